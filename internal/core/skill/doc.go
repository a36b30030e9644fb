// Package skill reads SKILL.md files as agentskills.io defines them, decides
// which of them a session may know of, and words the list in its prompt.
//
// It does no I/O: files come as bytes, and what the machine has as Facts. It is
// lenient with files and loud about them. A file is rejected only if a model
// could do nothing with it (no frontmatter, YAML that can't be read, no
// description, no name); everything else is a warning or a notice with its
// line.
//
// Invariants: of one name at most one skill is in use, the one of the nearest
// scope; a name that stands twice in one scope is in use from neither file; the
// list never exceeds its limits, and whatever is missing in it is in Omitted
// with the reason. The same input gives the same bytes.
package skill
