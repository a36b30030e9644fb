//go:build !unix

package contexthook

import "os/exec"

// inGroup leaves the command as it is: there are no process groups here.
func inGroup(*exec.Cmd) {}

// endGroup ends the command itself.
func endGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
