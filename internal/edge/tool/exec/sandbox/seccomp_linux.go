package sandbox

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data; all supported machines are little-endian.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	// x32Bit marks system calls of the x32 variant of amd64.
	x32Bit = 0x40000000
)

// deniedCalls reach into other processes or the kernel's inner life. None has
// a use for what agents run; several have been ways out of sandboxes.
var deniedCalls = [...]uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE,
	unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
	unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SETNS,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT,
	unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
}

// auditArch is this machine's number in seccomp_data, or 0 if filters are not
// written for it.
func auditArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// guardFilter refuses deniedCalls, where filters are supported.
func guardFilter() []unix.SockFilter { return filter(nil) }

// socketFilter refuses deniedCalls and, but for socketpair, sockets of all
// kinds or, with network, of all kinds but those of the Internet.
func socketFilter(network bool) []unix.SockFilter {
	var families []uint32
	if network {
		families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	}
	rules := []unix.SockFilter{jump(unix.SYS_SOCKET, 0, uint8(len(families)+2))}
	rules = append(rules, load(offArg0))
	for i, f := range families {
		rules = append(rules, jump(f, uint8(len(families)-i), 0)) // over the refusal
	}
	rules = append(rules, refuse(unix.EACCES), load(offNumber))
	rules = append(rules, jump(unix.SYS_SOCKETPAIR, 0, 4),
		load(offArg0), jump(unix.AF_UNIX, 1, 0), refuse(unix.EACCES), load(offNumber))
	return filter(rules)
}

// filter builds a program that refuses foreign architectures and deniedCalls,
// applies extra (which starts and ends with the call's number loaded), and
// allows the rest. Where filters are not supported it allows everything.
func filter(extra []unix.SockFilter) []unix.SockFilter {
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	arch := auditArch()
	if arch == 0 {
		return []unix.SockFilter{allow}
	}
	p := []unix.SockFilter{
		load(offArch), jump(arch, 1, 0), refuse(unix.EPERM), load(offNumber),
	}
	if runtime.GOARCH == "amd64" {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32Bit, Jf: 1}, refuse(unix.EPERM))
	}
	for _, nr := range deniedCalls {
		p = append(p, jump(nr, 0, 1), refuse(unix.EPERM))
	}
	p = append(p, extra...)
	return append(p, allow)
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump skips yes instructions if the loaded value is k, else no.
func jump(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func refuse(err unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(err)}
}

// encode gives a program the form that bwrap reads.
func encode(program []unix.SockFilter) []byte {
	var b []byte
	for _, in := range program {
		b = binary.LittleEndian.AppendUint16(b, in.Code)
		b = append(b, in.Jt, in.Jf)
		b = binary.LittleEndian.AppendUint32(b, in.K)
	}
	return b
}

// installFilter applies the program to the calling thread, for good.
func installFilter(program []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
