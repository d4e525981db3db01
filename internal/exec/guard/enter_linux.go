//go:build amd64 || arm64

package guard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func checkOSSupportsStrict() error { return nil }

// ExecWithSyscallWatch prepares this process for a command and then becomes the command. Before that, it sends the parent process, over
// the socket linkFD, a descriptor for watching system calls, and waits until the parent agrees. This function returns only on failure: nil
// if it has sent the error over the socket, else the error.
func ExecWithSyscallWatch(linkFD int, path string, argv, env []string) error {
	return setUpAndExec(linkFD, false, func() error { return syscall.Exec(path, argv, env) })
}

// ExecWatchedInOwnNetwork is like ExecWithSyscallWatch, but for a process that was started in its own network
// namespace. It also brings up loopback, and sends the parent the sockets that it has opened in the namespace.
func ExecWatchedInOwnNetwork(linkFD int, path string, argv, env []string) error {
	return setUpAndExec(linkFD, true, func() error { return syscall.Exec(path, argv, env) })
}

func setUpAndExec(linkFD int, ownNetwork bool, become func() error) error {
	runtime.LockOSThread() // the filter of system calls belongs to a thread
	unix.CloseOnExec(linkFD)
	var files []int
	var err error
	watched := false
	if ownNetwork {
		files, err = setUpNamespaceNetwork()
	}
	if err == nil {
		var calls int
		switch calls, err = installSyscallFilter(ownNetwork); {
		case err == nil:
			files, watched = append(files, calls), true
		case errors.Is(err, unix.EBUSY):
			err = nil // an outer run already watches; the parent polls the processes instead
		}
	}
	if err != nil {
		return sendFilesOrErrorOverLink(linkFD, err.Error(), false, nil)
	}
	if err := sendFilesOrErrorOverLink(linkFD, "", watched, files); err != nil {
		return err
	}
	if n, err := unix.Read(linkFD, make([]byte, 1)); n != 1 {
		return errors.Join(errors.New("cannot start the command: claudeless exec has ended"), err)
	}
	// Drop the capabilities that the set-up needed.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	return become()
}

// watchLinkHeaderBytes is the size of the header of a message on the link. The first byte is the number of files. The second is 1
// if the last file is the descriptor that reports system calls.
const watchLinkHeaderBytes = 2

// sendFilesOrErrorOverLink sends an error or files over the link. watched means that the last file reports system calls.
func sendFilesOrErrorOverLink(linkFD int, errorText string, watched bool, files []int) error {
	head := []byte{byte(len(files)), 0}
	if watched {
		head[1] = 1
	}
	if err := unix.Sendmsg(linkFD, append(head, errorText...), unix.UnixRights(files...), nil, 0); err != nil {
		return fmt.Errorf("passing network sockets out of the namespace: %w", err)
	}
	return nil
}

// setUpNamespaceNetwork brings up loopback and returns a socket for the API, one for the proxy, and one for each name server.
func setUpNamespaceNetwork() (apiProxyAndDNSSockets []int, err error) {
	if err := bringUpInterface("lo"); err != nil {
		return nil, fmt.Errorf("setting up the network namespace: starting the loopback interface: %w", err)
	}
	var files []int
	for _, port := range []int{apiPortInNamespace, proxyPortInNamespace} {
		ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return nil, err
		}
		if files, err = appendDuplicateOfSocket(files, ln); err != nil {
			return nil, err
		}
	}
	for _, server := range nameServers() {
		conn, err := addAddressAndListenForDNS(server)
		if err != nil {
			continue // names cannot be resolved through this address
		}
		if files, err = appendDuplicateOfSocket(files, conn); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addAddressAndListenForDNS adds the address of a name server to loopback and returns a socket for queries to this address.
func addAddressAndListenForDNS(nameServerAddr netip.Addr) (*net.UDPConn, error) {
	if !nameServerAddr.IsLoopback() {
		if err := addInterfaceAddress("lo", nameServerAddr); err != nil {
			return nil, fmt.Errorf("setting up the network namespace: adding the address of the name server: %w", err)
		}
	}
	return net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(nameServerAddr, dnsPort)))
}

func appendDuplicateOfSocket(files []int, socket interface{ File() (*os.File, error) }) ([]int, error) {
	file, err := socket.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return append(files, fd), err
}

func nameServers() []netip.Addr {
	text, _ := os.ReadFile("/etc/resolv.conf") // the default applies if the file is missing
	var list []netip.Addr
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			if addr, err := netip.ParseAddr(f[1]); err == nil && addr.Zone() == "" {
				list = append(list, addr)
			}
		}
	}
	if list == nil {
		list = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return list
}

func bringUpInterface(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // no data was written to fd
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	_ = unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr) // if this fails, the next call does too
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// BringUpLoopback brings up the loopback interface of this process's network namespace.
func BringUpLoopback() error { return bringUpInterface("lo") }

// ServeDNSNameAsLoopback resolves name to 127.0.0.1 in this network namespace, and no other name, until the result is closed.
func ServeDNSNameAsLoopback(name string) (io.Closer, error) {
	r := newOfflineNameServer()
	r.addrs[name], r.onlyKnownNames = netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	var sockets dnsSockets
	for _, server := range nameServers() {
		conn, err := addAddressAndListenForDNS(server)
		if err != nil {
			return sockets, errors.Join(err, sockets.Close())
		}
		sockets = append(sockets, conn)
		go r.answerQueriesUntilClosed(conn) // returns when Close closes the socket
	}
	return sockets, nil
}

type dnsSockets []net.PacketConn

func (s dnsSockets) Close() error {
	var errs []error
	for _, conn := range s {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

func addInterfaceAddress(interfaceName string, addr netip.Addr) error {
	ifi, err := net.InterfaceByName(interfaceName)
	if err != nil {
		return err
	}
	raw, family := addr.AsSlice(), byte(unix.AF_INET)
	if addr.Is6() {
		family = unix.AF_INET6
	}
	attr := unix.RtAttr{Len: uint16(unix.SizeofRtAttr + len(raw)), Type: unix.IFA_LOCAL}
	head := unix.NlMsghdr{
		Len:  uint32(unix.SizeofNlMsghdr + unix.SizeofIfAddrmsg + int(attr.Len)),
		Type: unix.RTM_NEWADDR, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE,
	}
	body := unix.IfAddrmsg{Family: family, Prefixlen: uint8(addr.BitLen()), Index: uint32(ifi.Index)}
	message := append(append(append(bytesOf(&head), bytesOf(&body)...), bytesOf(&attr)...), raw...)

	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // no data was written to fd
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 512)
	if _, _, err := unix.Recvfrom(fd, answer, 0); err != nil {
		return err
	}
	if code := *(*int32)(unsafe.Pointer(&answer[unix.SizeofNlMsghdr])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}

// bytesOf returns the memory of a structure, in the layout of the kernel.
func bytesOf[T any](v *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))...)
}

// installSyscallFilter installs a seccomp filter for this thread and its descendants. Before one of them starts a program or, if
// watchConnections is true, makes a connection, the kernel reports this to the returned descriptor. watchConnections also sets
// no_new_privs if needed, which disables setuid programs. The error EBUSY means that an outer run already has a filter.
func installSyscallFilter(watchConnections bool) (int, error) {
	const arch, nr = 4, 0 // offsets in seccomp_data
	asked := []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT}
	if watchConnections {
		asked = append(asked, unix.SYS_CONNECT)
	}
	n, archs := uint8(len(asked)), map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: arch},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: archs[runtime.GOARCH], Jf: n + 1},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: nr},
	}
	for i, call := range asked {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: n - uint8(i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
	)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	set := func(flags uintptr) (int, syscall.Errno) {
		fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags, uintptr(unsafe.Pointer(&program)))
		return int(fd), errno
	}
	const waitKillable = unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV // a signal does not repeat the system call; since Linux 5.19
	fd, errno := set(waitKillable)
	if errno == unix.EACCES && watchConnections {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return 0, err
		}
		fd, errno = set(waitKillable)
	}
	if errno == unix.EINVAL {
		fd, errno = set(0)
	}
	if errno != 0 {
		return 0, fmt.Errorf("watching system calls (seccomp): %w", errno)
	}
	return fd, nil
}

// HasSyscallWatchPrivilege reports whether this process may watch the system calls of a command without setting no_new_privs. Watching may still
// fail, because an outer run may watch them already.
func HasSyscallWatchPrivilege() bool {
	const admin = 1 << unix.CAP_SYS_ADMIN
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&admin != 0
}

// HasOnlyLoopbackInterfaces reports whether loopback is the only network interface, as in a run with --guard=strict.
func HasOnlyLoopbackInterfaces() bool {
	all, err := net.Interfaces()
	return err == nil && !slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback == 0 })
}
