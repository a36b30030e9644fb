package goclaw

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"
)

// ArtifactFilter selects artifacts; zero fields do not restrict. Results come
// newest first: by time, then by their run's ordinal, then by name.
type ArtifactFilter struct {
	Run     string     // left by this run
	Session SessionKey // left by this session's runs, or by workers that it asked for
	Root    string     // left by spawned runs of this tree
	Name    string
	Limit   int
}

// ArtifactInfo is an artifact as the CLI and the HTTP API show it.
type ArtifactInfo struct {
	Handle string `json:"handle"`
	Artifact
}

// Info adds a's handle.
func (a Artifact) Info() ArtifactInfo { return ArtifactInfo{a.Handle(), a} }

// handlePrefix begins every handle.
const handlePrefix = "artifact:"

// Handle is how models and people name a: artifact:RUN/NAME, RUN being the
// first eight characters of the run's id.
func (a Artifact) Handle() string { return ArtifactHandle(a.Run, a.Name) }

// ArtifactHandle is the handle of the run's artifact with that name.
func ArtifactHandle(run, name string) string {
	return handlePrefix + run[:min(8, len(run))] + "/" + name
}

// ParseArtifactHandle takes a handle apart: run is a run's id or a beginning of
// it. Its error is a BadRequest.
func ParseArtifactHandle(s string) (run, name string, err error) {
	rest, ok := strings.CutPrefix(s, handlePrefix)
	run, name, cut := strings.Cut(rest, "/")
	if !ok || !cut || run == "" || name == "" {
		return "", "", BadRequest(fmt.Sprintf("%q is no handle of an artifact: want artifact:RUN/NAME", s))
	}
	return run, name, nil
}

// IsArtifactHandle reports whether s is meant as a handle.
func IsArtifactHandle(s string) bool { return strings.HasPrefix(s, handlePrefix) }

const maxArtifactName = 200

// CheckArtifactName says why name can't be an artifact's: it is a plain
// relative path with slashes, of at most 200 bytes, that any system can hold.
func CheckArtifactName(name string) error {
	bad := func(why string) error {
		return BadRequest(fmt.Sprintf("artifact name %q %s; use a plain relative path such as plans/PLAN.md", name, why))
	}
	switch {
	case name == "":
		return bad("is empty")
	case len(name) > maxArtifactName:
		return BadRequest(fmt.Sprintf("an artifact's name has at most %d bytes, this one has %d; shorten it", maxArtifactName, len(name)))
	case name == "." || !fs.ValidPath(name):
		return bad("is no such path")
	case strings.ContainsAny(name, `\:*?"<>|`):
		return bad(`holds one of \ : * ? " < > |`)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return bad("holds a character that can't be seen")
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasSuffix(part, ".") || strings.TrimSpace(part) != part {
			return bad("has a part that ends with a dot, or begins or ends with a space")
		}
	}
	return nil
}
