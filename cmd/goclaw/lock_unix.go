//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file for this process, or returns errHeld.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errHeld
	}
	return err
}
