package file

import (
	"encoding/json"

	"goclaw"
)

// The schemas and descriptions below are sent with every model call: each byte
// is paid for on every turn.
var (
	readSpec = goclaw.ToolSpec{
		Name:        "read",
		Description: "Read a text file. Lines come as number, tab, text.",
		Schema:      json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"offset":{"type":"integer","description":"first line"},"limit":{"type":"integer"}}}`),
		Idempotent:  true,
	}
	writeSpec = goclaw.ToolSpec{
		Name:        "write",
		Description: "Create or replace a file and its folders. Read an existing file first.",
		Schema:      json.RawMessage(`{"type":"object","required":["path","content"],"properties":{"path":{"type":"string"},"content":{"type":"string"}}}`),
	}
	editSpec = goclaw.ToolSpec{
		Name:        "edit",
		Description: "Replace text in a file you have read. old must match exactly once, unless all is true.",
		Schema:      json.RawMessage(`{"type":"object","required":["path","old","new"],"properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},"all":{"type":"boolean"}}}`),
	}
	lsSpec = goclaw.ToolSpec{
		Name:        "ls",
		Description: "List a folder.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		Idempotent:  true,
	}
	grepSpec = goclaw.ToolSpec{
		Name:        "grep",
		Description: "Search files by RE2 regular expression.",
		Schema:      json.RawMessage(`{"type":"object","required":["pattern"],"properties":{"pattern":{"type":"string"},"path":{"type":"string"},"glob":{"type":"string"},"context":{"type":"integer"},"limit":{"type":"integer"}}}`),
		Idempotent:  true,
	}
	globSpec = goclaw.ToolSpec{
		Name:        "glob",
		Description: "Find files by name, newest first, e.g. src/**/*.{ts,tsx}.",
		Schema:      json.RawMessage(`{"type":"object","required":["pattern"],"properties":{"pattern":{"type":"string"},"path":{"type":"string"}}}`),
		Idempotent:  true,
	}
)
