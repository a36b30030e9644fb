CREATE TABLE doc (
  id      INTEGER PRIMARY KEY,
  agent   TEXT NOT NULL,
  source  TEXT NOT NULL,
  session TEXT NOT NULL,
  path    TEXT NOT NULL,
  version TEXT NOT NULL,
  at      INTEGER NOT NULL,
  bytes   INTEGER NOT NULL,
  UNIQUE (agent, path)
);
CREATE INDEX doc_at ON doc (agent, at);
CREATE TABLE chunk (
  id          INTEGER PRIMARY KEY,
  doc         INTEGER NOT NULL REFERENCES doc ON DELETE CASCADE,
  hash        TEXT NOT NULL,
  n           INTEGER NOT NULL,
  line        INTEGER NOT NULL,
  end_line    INTEGER NOT NULL,
  title       TEXT NOT NULL,
  body        TEXT NOT NULL,
  terms       TEXT NOT NULL,
  title_terms TEXT NOT NULL
);
CREATE INDEX chunk_doc ON chunk (doc, n);
CREATE INDEX chunk_hash ON chunk (hash);
-- The terms come folded and stemmed: the tokenizer has nothing to do but cut.
CREATE VIRTUAL TABLE fts USING fts5 (terms, title_terms, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co So'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (fts, row);
CREATE TRIGGER chunk_gone AFTER DELETE ON chunk BEGIN
  DELETE FROM fts WHERE rowid = old.id;
END;
CREATE TABLE vector (
  hash  TEXT NOT NULL,
  model TEXT NOT NULL,
  data  BLOB NOT NULL,
  PRIMARY KEY (hash, model)
);
CREATE TABLE mark (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
);
