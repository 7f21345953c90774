import os

# Ray is polite to other programs; on a busy machine its workers would hardly get on.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
