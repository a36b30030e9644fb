//go:build !linux

package pgtest

import "syscall"

// account is whom the server runs as: ourselves.
type account struct{}

func servant() (account, error) { return account{}, nil }

func (account) owns(string) error { return nil }

func (account) attributes() *syscall.SysProcAttr { return nil }
