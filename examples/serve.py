"""A model behind HTTP: an exported folder (NumPy) or an ONNX file, answered by FastAPI.

pip install fastapi uvicorn
PSILONNET_MODEL=exported uvicorn serve:app         # the folder of model.export_numpy
PSILONNET_MODEL=model.onnx uvicorn serve:app       # the file of model.export_onnx
curl localhost:8000/predict -d '[{"income": 40, "city": "Oslo"}]'
"""

import datetime
import json
import math
import os
import sys
import warnings
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

MOST_BYTES, MOST_ROWS = 8_000_000, 10_000  # of a request


class RefusedError(Exception):
    """A request that cannot be answered, with its status."""


class NumpyModel:
    """An exported folder, read by the predictor that is in it: no torch, no psilonnet."""

    def __init__(self, folder):
        sys.path.insert(0, str(folder))
        from predictor import Predictor, class_numbers, probabilities  # noqa: PLC0415

        self.predictor = Predictor(folder)
        self.class_numbers, self.probabilities = class_numbers, probabilities
        encoder = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["encoder"]
        self.kinds = dict(zip(encoder["names"], encoder["kinds"], strict=True))

    def predict(self, columns):
        outputs = self.predictor.decision_function(columns)
        classes = self.predictor.classes
        if classes is None:
            return {"prediction": (outputs[:, 0] if outputs.shape[1] == 1 else outputs).tolist()}
        labels = [classes[k] for k in self.class_numbers(outputs)]
        return {"prediction": labels, "probabilities": self.probabilities(outputs).tolist()}


class OnnxModel:
    """An ONNX file, run by ONNX Runtime; psilonnet turns tables into its inputs."""

    def __init__(self, path):
        import onnxruntime  # noqa: PLC0415

        from psilonnet.deploy import onnx_inputs  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # one process per core answers more requests
        self.session = onnxruntime.InferenceSession(str(path), options)
        self.onnx_inputs = onnx_inputs
        kinds = json.loads(self.session.get_modelmeta().custom_metadata_map["kinds"])
        self.kinds = {wanted.name: kinds[wanted.name] for wanted in self.session.get_inputs()}

    def predict(self, columns):
        import pyarrow as pa  # noqa: PLC0415

        types = {
            "number": pa.float64(),
            "time": pa.timestamp("ms"),
            "duration": pa.duration("ms"),
            "category": pa.string(),
        }
        words = {n: [word(v) for v in c] for n, c in columns.items() if self.kinds[n] == "category"}
        cells = {**columns, **words}
        table = pa.table({n: pa.array(c, types[self.kinds[n]]) for n, c in cells.items()})
        found = self.session.run(None, self.onnx_inputs(table, self.session))
        names = ["prediction"] if len(found) == 1 else ["prediction", "probabilities"]
        return {name: values.tolist() for name, values in zip(names, found, strict=True)}


def columns_of(rows, kinds):
    """Return rows of JSON as columns of the kinds of the model; missing cells are null."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RefusedError(422, 'Rows must be a list of objects, such as [{"income": 40}].')
    if not 0 < len(rows) <= MOST_ROWS:
        raise RefusedError(422, f"A request must have 1 to {MOST_ROWS:,} rows. Got {len(rows):,}.")
    for name in kinds:
        for k, row in enumerate(rows):
            if name not in row:
                raise RefusedError(
                    422, f"Column {name!r} is missing in row {k}. Give null for no value."
                )
    return {name: [cell(name, kind, row[name]) for row in rows] for name, kind in kinds.items()}


def cell(name, kind, value):
    """Return a cell of JSON as a number, a date, a duration or a word; or say what it must be."""
    try:
        if value is None:
            return None
        if kind == "time":
            moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
            utc = moment.astimezone(datetime.timezone.utc) if moment.tzinfo else moment
            return utc.replace(tzinfo=None)
        if kind == "category":
            if isinstance(value, (str, int, float)):  # booleans are whole numbers
                return value
        elif not isinstance(value, (bool, str)) and math.isfinite(value):
            return float(value) if kind == "number" else datetime.timedelta(days=value)
    except (TypeError, ValueError, AttributeError, OverflowError):
        pass
    must = {
        "number": "a finite number",
        "time": 'a date or time such as "2024-05-17" or "2024-05-17T08:30:00"',
        "duration": "a number of days",
        "category": "a word, a number or true or false",
    }
    raise RefusedError(422, f"Column {name!r} must hold {must[kind]}, or null. Got {value!r:.80}.")


def word(value):
    """Return a level as it is written in training: 3 and 3.0 are one level."""
    whole = isinstance(value, float) and value.is_integer()
    return None if value is None else str(int(value) if whole else value)


async def body_of(request):
    """Return the body of a request, but never read more than MOST_BYTES."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise RefusedError(413, f"A request must have at most {MOST_BYTES:,} bytes.")
        parts.append(part)
    return b"".join(parts)


path = Path(os.environ["PSILONNET_MODEL"])
model = OnnxModel(path) if path.suffix == ".onnx" else NumpyModel(path)
app = FastAPI(title=path.stem)


@app.get("/columns")
async def columns():
    """Return the columns of the model and what they hold."""
    return model.kinds


@app.post("/predict")
async def predict(request: Request):
    """Predict rows, a list of objects; warnings of the model are in the answer."""
    try:
        body = await body_of(request)
        try:
            rows = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RefusedError(400, f"The body must be JSON: {error}.") from None
        table = columns_of(rows, model.kinds)
        with warnings.catch_warnings(record=True) as said:  # one request at a time gets here
            warnings.simplefilter("always")
            answer = model.predict(table)
    except RefusedError as refused:
        status, words = refused.args
    except ValueError as error:  # what the model refuses, in its own words
        status, words = 422, str(error)
    else:
        return JSONResponse({**answer, "warnings": [str(warning.message) for warning in said]})
    # JSON may hold half a character, which UTF-8 cannot.
    return JSONResponse({"detail": words.encode("utf-8", "replace").decode()}, status)
