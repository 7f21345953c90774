"""
A fit in a log
==============

``fit`` takes callbacks, which are told of every step and every evaluation of every training. This
one writes a line of JSON for each evaluation, and the file can be read while the fit runs. The
same three lines of ``on_evaluation`` send the numbers to MLflow or to TensorBoard; see
:doc:`/losses`.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from psilonnet import Design, PSiLONRegressor
from psilonnet.training import Callback

LOG = Path("fit.jsonl")


class JsonLines(Callback):
    """Writes a line for each evaluation of a training, which has a network for each fold."""

    def on_evaluation(self, run):
        """Write what the last line of the history holds."""
        line = {"training": run.name, "step": run.step}
        for name in ("train_loss", "valid_loss", "penalty"):
            line[name] = run.history.column(name)[-1].tolist()
        with LOG.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


LOG.unlink(missing_ok=True)
X, y = load_diabetes(return_X_y=True, as_frame=True)
designs = [Design(), Design(directions="l2")]
model = PSiLONRegressor(designs=designs, width=32, random_state=0, verbose=False)
model.fit(X, y, callbacks=[JsonLines()])

# %%
# Each design is a training of its own. Five networks of it are trained side by side, one for each
# fold, and each is measured on the rows that it does not see. While the regularisation is weak the
# held-out loss falls and then rises: the networks learn their rows by heart. As the regularisation
# grows it falls again.

lines = [json.loads(line) for line in LOG.read_text().splitlines()]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, name in zip(axes, dict.fromkeys(line["training"] for line in lines), strict=True):
    own = [line for line in lines if line["training"] == name]
    steps = [line["step"] for line in own]
    folds = [line["valid_loss"] for line in own]
    ax.plot(steps, folds, color="0.75", lw=1)
    ax.plot(steps, [sum(losses) / len(losses) for losses in folds], color="C0", lw=2)
    ax.set(title=f"design {name}", xlabel="step")
axes[0].set_ylabel("held-out loss: folds, and their mean")
plt.show()
