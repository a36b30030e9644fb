//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

// Detect finds no sandbox: there is none for this system.
func Detect(context.Context) (Sandbox, string) {
	return nil, "there is no sandbox for " + runtime.GOOS + " yet"
}

// Find finds none either.
func Find(ctx context.Context, _ string) (Sandbox, string) { return Detect(ctx) }

// MaybeChild does nothing on this system.
func MaybeChild() {}
