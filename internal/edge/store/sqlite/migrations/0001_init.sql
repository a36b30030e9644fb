-- Times are Unix milliseconds. An optional time is NULL until it is set, so
-- that finished_at IS NULL means "has not ended", which the partial indexes
-- below rely on: nothing that the engine asks many times a second ever walks
-- over ended runs.
--
-- Where a row must not be there twice, the store looks before it writes. The
-- unique indexes only guard against a mistake in that: they stand alone, so
-- that a check of the store can drop them and see any double.

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
  id                 TEXT    NOT NULL,
  session_key        TEXT    NOT NULL REFERENCES sessions (key),
  trigger            TEXT    NOT NULL,
  requester_key      TEXT    NOT NULL,
  parent             TEXT    NOT NULL,
  depth              INTEGER NOT NULL,
  root               TEXT    NOT NULL, -- the run at the top of its tree
  lane               TEXT    NOT NULL, -- a session key
  agent              TEXT    NOT NULL, -- of its session
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
  waits_for          TEXT    NOT NULL DEFAULT '',
  wake_at            INTEGER,          -- a waiting run can be claimed from then on
  recovery           TEXT    NOT NULL DEFAULT '', -- JSON of the last takeover
  idempotent         TEXT    NOT NULL,
  head               INTEGER NOT NULL, -- 1: the oldest unended run of its session
  tidied             INTEGER NOT NULL DEFAULT 0, -- 1: its events were removed
  CHECK ((finished_at IS NULL) = (state IN ('queued', 'running', 'waiting', 'interrupted')))
);

CREATE UNIQUE INDEX runs_id ON runs (id);
CREATE UNIQUE INDEX runs_idempotent ON runs (idempotent) WHERE idempotent <> '';
CREATE INDEX runs_session   ON runs (session_key, ordinal);
CREATE INDEX runs_requester ON runs (requester_key, ordinal) WHERE requester_key <> '';
CREATE INDEX runs_parent    ON runs (parent, ordinal) WHERE parent <> '';
CREATE INDEX runs_tree      ON runs (root) WHERE trigger = 'spawn';
CREATE INDEX runs_open      ON runs (session_key, ordinal) WHERE finished_at IS NULL;
CREATE INDEX runs_children  ON runs (requester_key) WHERE finished_at IS NULL AND trigger = 'spawn';
CREATE INDEX runs_workers   ON runs (parent) WHERE finished_at IS NULL AND trigger = 'spawn';
CREATE INDEX runs_running   ON runs (owner) WHERE state = 'running';
CREATE INDEX runs_busy      ON runs (lane, agent) WHERE state = 'running' AND trigger = 'spawn';
CREATE INDEX runs_waiting   ON runs (ordinal) WHERE state = 'waiting';
CREATE INDEX runs_released  ON runs (ordinal) WHERE state = 'interrupted';
CREATE INDEX runs_withdrawn ON runs (ordinal) WHERE state IN ('queued', 'waiting') AND cancel_at IS NOT NULL;
CREATE INDEX runs_untidied  ON runs (ordinal) WHERE cleanup = 'delete' AND tidied = 0;
CREATE INDEX runs_ready_turns ON runs (ordinal)
  WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger <> 'spawn';
CREATE INDEX runs_ready_workers ON runs (lane, agent, ordinal)
  WHERE state = 'queued' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn';
CREATE INDEX runs_wake_turns ON runs (wake_at)
  WHERE state = 'waiting' AND cancel_at IS NULL AND head = 1 AND trigger <> 'spawn';
CREATE INDEX runs_wake_workers ON runs (wake_at, lane, agent)
  WHERE state = 'waiting' AND cancel_at IS NULL AND head = 1 AND trigger = 'spawn';

CREATE TABLE events (
  run_id TEXT    NOT NULL,
  seq    INTEGER NOT NULL,
  kind   TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  data   TEXT    NOT NULL  -- JSON of the whole event
);

CREATE UNIQUE INDEX events_seq ON events (run_id, seq);

-- source is not unique on purpose: that a run is announced once follows from
-- the fence of its end, and a constraint would only hide a breach of it.
CREATE TABLE inbox (
  n           INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  session_key TEXT    NOT NULL,
  source      TEXT    NOT NULL,
  group_run   TEXT    NOT NULL,
  mode        TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0, -- deliveries that failed
  next_at     INTEGER NOT NULL DEFAULT 0,
  parked_at   INTEGER,
  error       TEXT    NOT NULL DEFAULT '',
  consumed_by TEXT    NOT NULL DEFAULT '',
  consumed_at INTEGER
);

CREATE UNIQUE INDEX inbox_id ON inbox (id);
CREATE INDEX inbox_pending ON inbox (session_key, n) WHERE consumed_at IS NULL AND parked_at IS NULL;
CREATE INDEX inbox_parked  ON inbox (n) WHERE consumed_at IS NULL AND parked_at IS NOT NULL;
CREATE INDEX inbox_source  ON inbox (source) WHERE consumed_at IS NULL;
CREATE INDEX inbox_taken   ON inbox (consumed_by) WHERE consumed_by <> '';

CREATE TABLE outbox (
  n           INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT    NOT NULL,
  session_key TEXT    NOT NULL,
  run_id      TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  state       TEXT    NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  next_at     INTEGER NOT NULL,
  error       TEXT    NOT NULL DEFAULT '',
  parked_at   INTEGER,
  created_at  INTEGER NOT NULL
);

CREATE UNIQUE INDEX outbox_id ON outbox (id);
CREATE INDEX outbox_parked ON outbox (n) WHERE state = 'parked';
CREATE INDEX outbox_open ON outbox (session_key, n) WHERE state IN ('pending', 'sending');

CREATE TABLE blobs (
  sha256 TEXT NOT NULL PRIMARY KEY,
  data   BLOB NOT NULL
);

CREATE TABLE artifacts (
  run_id     TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  sha256     TEXT    NOT NULL REFERENCES blobs (sha256),
  size       INTEGER NOT NULL,
  media_type TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

-- Every recorded model call. The indexes hold what a reservation sums.
CREATE TABLE calls (
  run_id      TEXT    NOT NULL,
  seq         INTEGER NOT NULL,
  root        TEXT    NOT NULL,
  agent       TEXT    NOT NULL,
  definition  TEXT    NOT NULL,
  model       TEXT    NOT NULL,
  day         TEXT    NOT NULL, -- 2006-01-02, the person's
  at          INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost_usd    REAL,             -- NULL: no price is known
  took_ms     INTEGER NOT NULL
);

CREATE INDEX calls_tree ON calls (root, input, output, cost_usd);
CREATE INDEX calls_day  ON calls (agent, day, input, output, cost_usd, took_ms);

-- What calls under way may spend, and what calls without a record may have
-- spent.
CREATE TABLE holds (
  run_id TEXT    NOT NULL,
  epoch  INTEGER NOT NULL,
  root   TEXT    NOT NULL,
  agent  TEXT    NOT NULL,
  day    TEXT    NOT NULL,
  tokens INTEGER NOT NULL,
  usd    REAL    NOT NULL,
  spent  INTEGER NOT NULL DEFAULT 0, -- 1: lost
  at     INTEGER NOT NULL
);

CREATE INDEX holds_open ON holds (run_id) WHERE spent = 0;
CREATE INDEX holds_tree ON holds (root);
CREATE INDEX holds_day  ON holds (agent, day);

-- What is left of the providers' allowances.
CREATE TABLE rates (
  name     TEXT    NOT NULL PRIMARY KEY,
  requests REAL    NOT NULL,
  tokens   REAL    NOT NULL,
  at       INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE control (
  key   TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL -- JSON
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
