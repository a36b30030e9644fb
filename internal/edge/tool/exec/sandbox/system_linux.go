package sandbox

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// systemDirs hold programs and libraries.
var systemDirs = [...]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
	"/nix/store", "/run/current-system",
}

// etcEntries are what programs need of /etc. Nothing here is a secret.
var etcEntries = [...]string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "debian_version",
	"fonts", "gitconfig", "group", "hosts", "ld.so.cache", "ld.so.conf",
	"ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "mime.types",
	"nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/tls/certs",
	"protocols", "services", "ssl/certs", "ssl/openssl.cnf", "timezone",
}

// networkEntries are needed to resolve names.
var networkEntries = [...]string{"/etc/resolv.conf", "/etc/host.conf", "/etc/gai.conf"}

// etcPaths are the existing files and folders of /etc that the job may read.
func etcPaths(network bool) []string {
	var paths []string
	for _, e := range etcEntries {
		paths = append(paths, filepath.Join("/etc", e))
	}
	if network {
		paths = append(paths, networkEntries[:]...)
	}
	return existing(paths)
}

func existing(paths []string) []string {
	var found []string
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// shell is the program that runs commands.
func shell() string {
	for _, p := range []string{"/bin/bash", "/usr/bin/bash", "/run/current-system/sw/bin/bash"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "/bin/sh"
}

// environment is all that a command is told about where it runs.
func environment(home, temp string, extra []string) []string {
	return append([]string{
		"PATH=" + Path, "HOME=" + home, "TMPDIR=" + temp, "USER=agent", "LOGNAME=agent",
		"LANG=C.UTF-8", "TERM=dumb", "SHELL=" + shell(),
	}, extra...)
}

// within reports whether path is dir or lies beneath it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// top is the first component of path beneath dir; "" if there is none.
func top(path, dir string) string {
	if path == dir || !within(path, dir) {
		return ""
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
	name, _, _ := strings.Cut(rel, "/")
	return name
}

// keepDescriptors keeps the files that this process inherited from commands;
// those that Go opened are kept from them already.
func keepDescriptors() {
	// Without the call (before Linux 5.11) inherited files stay inherited.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// memoryFile returns a file without a name that holds data, to be read from
// its start.
func memoryFile(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// descendants lists the processes that come from pid.
func descendants(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]int{}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // ended since
		}
		// The name in parentheses may hold anything.
		i := strings.LastIndexByte(string(data), ')')
		fields := strings.Fields(string(data[i+1:]))
		if i < 0 || len(fields) < 2 {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], id)
	}
	var found []int
	for next := []int{pid}; len(next) > 0; {
		kids := children[next[0]]
		found, next = append(found, kids...), append(next[1:], kids...)
	}
	return found
}
