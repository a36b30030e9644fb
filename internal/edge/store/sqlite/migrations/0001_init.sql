-- Times are Unix milliseconds. An optional time is NULL until it is set, so
-- that finished_at IS NULL means "has not ended", which the partial indexes
-- below rely on: nothing that the engine asks many times a second ever walks
-- over ended runs.

PRAGMA application_id = 0x476f436c; -- "GoCl"

CREATE TABLE sessions (
  key         TEXT    NOT NULL PRIMARY KEY,
  agent       TEXT    NOT NULL,
  worker      INTEGER NOT NULL,           -- subagent and cron sessions
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  model       TEXT    NOT NULL DEFAULT '',
  thinking    TEXT    NOT NULL DEFAULT '',
  reset_at    INTEGER NOT NULL DEFAULT 0, -- an ordinal, not a time
  archived_at INTEGER,
  deleted_at  INTEGER,
  turns       INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX sessions_stale ON sessions (updated_at)
  WHERE worker = 1 AND archived_at IS NULL AND deleted_at IS NULL;

CREATE TABLE processes (
  id          TEXT    NOT NULL PRIMARY KEY,
  lease_until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE runs (
  ordinal            INTEGER PRIMARY KEY AUTOINCREMENT,
  id                 TEXT    NOT NULL UNIQUE,
  session_key        TEXT    NOT NULL REFERENCES sessions (key),
  trigger            TEXT    NOT NULL,
  requester_key      TEXT    NOT NULL,
  parent             TEXT    NOT NULL,
  depth              INTEGER NOT NULL,
  label              TEXT    NOT NULL,
  task               TEXT    NOT NULL,
  context            TEXT    NOT NULL,
  profile            TEXT    NOT NULL, -- JSON
  cleanup            TEXT    NOT NULL,
  announce           TEXT    NOT NULL,
  state              TEXT    NOT NULL DEFAULT 'queued',
  result             TEXT    NOT NULL DEFAULT '',
  error              TEXT    NOT NULL DEFAULT '',
  input_tokens       INTEGER NOT NULL DEFAULT 0,
  output_tokens      INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
  cache_write_tokens INTEGER NOT NULL DEFAULT 0,
  cost_usd           REAL,             -- NULL: no price is known
  created_at         INTEGER NOT NULL,
  started_at         INTEGER,
  finished_at        INTEGER,
  epoch              INTEGER NOT NULL DEFAULT 0,
  owner              TEXT    NOT NULL DEFAULT '',
  deadline           INTEGER,
  cancel_at          INTEGER,
  cancel_why         TEXT    NOT NULL DEFAULT '',
  idempotent         TEXT    NOT NULL,
  head               INTEGER NOT NULL, -- 1: the oldest unended run of its session
  tidied             INTEGER NOT NULL DEFAULT 0, -- 1: its events were removed
  CHECK ((finished_at IS NULL) = (state IN ('queued', 'running', 'interrupted')))
);

CREATE UNIQUE INDEX runs_idempotent ON runs (idempotent) WHERE idempotent <> '';
CREATE INDEX runs_session   ON runs (session_key, ordinal);
CREATE INDEX runs_requester ON runs (requester_key, ordinal) WHERE requester_key <> '';
CREATE INDEX runs_parent    ON runs (parent, ordinal) WHERE parent <> '';
CREATE INDEX runs_open      ON runs (session_key, ordinal) WHERE finished_at IS NULL;
CREATE INDEX runs_children  ON runs (requester_key) WHERE finished_at IS NULL AND trigger = 'spawn';
CREATE INDEX runs_running   ON runs (owner, trigger) WHERE state = 'running';
CREATE INDEX runs_released  ON runs (ordinal) WHERE state = 'interrupted';
CREATE INDEX runs_withdrawn ON runs (ordinal) WHERE state = 'queued' AND cancel_at IS NOT NULL;
CREATE INDEX runs_untidied  ON runs (ordinal) WHERE cleanup = 'delete' AND tidied = 0;
CREATE INDEX runs_ready_turns ON runs (ordinal)
  WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger <> 'spawn';
CREATE INDEX runs_ready_workers ON runs (ordinal)
  WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn';

CREATE TABLE events (
  run_id TEXT    NOT NULL REFERENCES runs (id),
  seq    INTEGER NOT NULL,
  kind   TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  data   TEXT    NOT NULL, -- JSON of the whole event
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;

-- source is not unique on purpose: that a run is announced once follows from
-- the fence of its end, and a constraint would only hide a breach of it.
CREATE TABLE inbox (
  n           INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT    NOT NULL UNIQUE,
  session_key TEXT    NOT NULL,
  source      TEXT    NOT NULL,
  group_run   TEXT    NOT NULL,
  mode        TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  consumed_by TEXT    NOT NULL DEFAULT '',
  consumed_at INTEGER
);

CREATE INDEX inbox_pending ON inbox (session_key, n) WHERE consumed_at IS NULL;
CREATE INDEX inbox_source  ON inbox (source) WHERE consumed_at IS NULL;

CREATE TABLE outbox (
  n           INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT    NOT NULL UNIQUE,
  session_key TEXT    NOT NULL,
  run_id      TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  state       TEXT    NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  next_at     INTEGER NOT NULL,
  error       TEXT    NOT NULL DEFAULT '',
  created_at  INTEGER NOT NULL
);

CREATE INDEX outbox_open ON outbox (session_key, n) WHERE state IN ('pending', 'sending');

CREATE TABLE blobs (
  sha256 TEXT NOT NULL PRIMARY KEY,
  data   BLOB NOT NULL
);

CREATE TABLE artifacts (
  run_id     TEXT    NOT NULL REFERENCES runs (id),
  name       TEXT    NOT NULL,
  sha256     TEXT    NOT NULL REFERENCES blobs (sha256),
  size       INTEGER NOT NULL,
  media_type TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

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
WHERE trigger IN ('spawn', 'cron');
