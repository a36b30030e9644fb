// Package frontmatter splits a markdown file into its YAML frontmatter and its
// body, and reads the frontmatter into values that know where they stand.
//
// It does no I/O and knows no keys: what a field means is for its caller. It
// never guesses. Invariants: the body is the file's own bytes from the line
// after the closing delimiter on; a file that is not read says where and why; a
// key that stands twice is an error; no input makes it panic, and size, depth
// and the number of values are bounded.
package frontmatter
