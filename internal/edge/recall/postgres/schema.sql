DROP TABLE IF EXISTS memory_chunk, memory_doc, memory_vector, memory_mark;
CREATE TABLE memory_doc (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent   text NOT NULL,
  source  text NOT NULL,
  session text NOT NULL,
  path    text NOT NULL,
  version text NOT NULL,
  at      bigint NOT NULL,
  bytes   bigint NOT NULL,
  UNIQUE (agent, path)
);
CREATE INDEX memory_doc_at ON memory_doc (agent, at);
CREATE TABLE memory_chunk (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  doc         bigint NOT NULL REFERENCES memory_doc ON DELETE CASCADE,
  hash        text NOT NULL,
  n           int NOT NULL,
  line        int NOT NULL,
  end_line    int NOT NULL,
  title       text NOT NULL,
  body        text NOT NULL,
  terms       text NOT NULL,
  title_terms text NOT NULL,
  -- The terms come folded and stemmed: a parser could only spoil them.
  words       tsvector NOT NULL
);
CREATE INDEX memory_chunk_doc ON memory_chunk (doc);
CREATE INDEX memory_chunk_hash ON memory_chunk (hash);
CREATE INDEX memory_chunk_words ON memory_chunk USING gin (words);
CREATE TABLE memory_vector (
  hash  text NOT NULL,
  model text NOT NULL,
  data  real[] NOT NULL,
  PRIMARY KEY (hash, model)
);
CREATE TABLE memory_mark (
  name  text PRIMARY KEY,
  value bigint NOT NULL
);
