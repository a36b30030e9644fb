-- The crontab: what is due, and what became of what was.

CREATE TABLE cron_jobs (
  id       TEXT    NOT NULL PRIMARY KEY,
  agent    TEXT    NOT NULL,
  revision INTEGER NOT NULL,
  enabled  INTEGER NOT NULL,
  next_at  INTEGER,           -- NULL: never
  data     TEXT    NOT NULL   -- JSON of the whole job
) WITHOUT ROWID;

CREATE INDEX cron_jobs_due ON cron_jobs (next_at) WHERE enabled = 1 AND next_at IS NOT NULL;

CREATE TABLE firings (
  n       INTEGER PRIMARY KEY AUTOINCREMENT,
  job     TEXT    NOT NULL, -- perhaps of a job that was removed
  due     INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  manual  INTEGER NOT NULL,
  skipped TEXT    NOT NULL,
  missed  INTEGER NOT NULL,
  run_id  TEXT    NOT NULL  -- '': nothing ran
);

CREATE UNIQUE INDEX firings_due ON firings (job, due) WHERE manual = 0;
CREATE INDEX firings_job ON firings (job, n);
CREATE INDEX firings_run ON firings (run_id) WHERE run_id <> '';

-- What the crontab has started and has not ended.
CREATE INDEX runs_scheduled ON runs (ordinal) WHERE finished_at IS NULL AND trigger IN ('cron', 'heartbeat');

-- A tree's runs can be listed, not only its spawned ones counted.
DROP INDEX runs_tree;
CREATE INDEX runs_tree ON runs (root, trigger);

-- Of the crontab's runs only the isolated ones are shown with the workers.
DROP VIEW subagent_runs;

CREATE VIEW subagent_runs AS
SELECT
  id,
  session_key,
  requester_key,
  task,
  CASE
    WHEN label <> '' THEN label
    WHEN coalesce(json_extract(profile, '$.definition'), '') <> '' THEN json_extract(profile, '$.definition')
    ELSE substr(id, 1, 8)
  END AS label,
  json_extract(profile, '$.model') AS model,
  state AS status,
  result,
  error,
  started_at,
  finished_at,
  finished_at - started_at AS duration_ms,
  created_at,
  coalesce(json_extract(profile, '$.definition'), '') AS definition,
  coalesce(json_extract(profile, '$.definitionSha'), '') AS definition_sha,
  depth,
  parent,
  input_tokens,
  output_tokens,
  cache_read_tokens,
  cache_write_tokens,
  cost_usd,
  epoch AS attempt
FROM runs
WHERE trigger = 'spawn'
  OR trigger = 'cron' AND EXISTS (SELECT 1 FROM sessions WHERE sessions.key = runs.session_key AND worker = 1);
