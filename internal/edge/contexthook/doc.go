// Package contexthook runs the person's own command over the sections of a
// prompt: it gets them as JSON and returns them as they are to be.
//
// It refuses to go on with anything but a whole, valid answer in time: what
// the prompt would then lack, nobody would notice. The command gets no keys:
// its environment is cleared but for what it needs to run at all.
//
// Invariants: nothing of a command outlives Rewrite, whatever it started in
// its process group (on Windows: but for what its children started); its
// output is bounded; sections that come back as they went keep their source,
// all others name the command as theirs.
package contexthook
