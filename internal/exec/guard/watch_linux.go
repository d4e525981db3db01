//go:build amd64 || arm64

package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NewWatchLink creates connected sockets: ours for this process, theirs for a child that calls [ExecWithSyscallWatch]. The child
// sends file descriptors over its socket: the one that reports its system calls, and the sockets in its network.
func NewWatchLink() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "link"), os.NewFile(uintptr(fds[1]), "link"), nil
}

// WatchOptions configure how the system calls of a command are watched. PID and Log must be set.
type WatchOptions struct {
	PID         int // process that calls [ExecWithSyscallWatch]
	Log         *BreachCollector
	OwnFiles    ClaudelessFiles // files that do not count as a real claude
	ExpectsReal bool            // the run is meant to use a real claude
	OwnNetwork  bool            // the process has its own network namespace
	NoNetwork   bool            // an outer run has cut off the network already; see [HasOnlyLoopbackInterfaces]
}

var errNestedStrict = errors.New("--guard=strict cannot be nested: an outer claudeless exec --guard=strict already watches the network connections")

type syscallWatcher struct {
	WatchOptions
	link, notifications *os.File
	wake                [2]*os.File // closing the second pipe end stops the watch
	servers             []net.PacketConn
	resolver            *offlineNameServer
	programs            realCLIFileCache
	poller              *RealClaudePoller // scans for a real claude; nil if system calls are watched, or if the run expects a real claude
	tasks               sync.WaitGroup
}

// StartWatching checks the system calls of a process that calls [ExecWithSyscallWatch]. Over link, it receives the descriptor that reports
// the calls, and also the sockets of the process's own network namespace, if any. If an outer run checks the calls, there is no
// descriptor. StartWatching then polls the processes, unless it expects a real claude. The caller must call [CommandWatch.Close], which also
// closes link. If StartWatching fails, link is already closed.
func StartWatching(link *os.File, o WatchOptions) (*CommandWatch, error) {
	n := &CommandWatch{w: &syscallWatcher{WatchOptions: o, link: link, resolver: newOfflineNameServer()}}
	files, err := n.w.receiveFiles()
	if err == nil {
		err = n.w.startServersAndWatch(n, files)
	}
	for _, file := range files {
		file.Close() // the servers have copies
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// receiveFiles reads one message of [sendFilesOrErrorOverLink] and returns its files, except the descriptor that reports system calls, which
// it stores in w.notifications. The caller must close the files even if the message is an error.
func (w *syscallWatcher) receiveFiles() (files []*os.File, err error) {
	text, oob := make([]byte, 4096), make([]byte, 1024)
	n, rights, _, _, err := unix.Recvmsg(int(w.link.Fd()), text, oob, unix.MSG_CMSG_CLOEXEC)
	messages, _ := unix.ParseSocketControlMessage(oob[:max(rights, 0)]) // descriptors that are missing because of an error are noticed below
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "network"))
		}
	}
	switch {
	case n > watchLinkHeaderBytes:
		return files, errors.New(string(text[watchLinkHeaderBytes:n]))
	case n < watchLinkHeaderBytes || len(files) != int(text[0]):
		return files, errors.Join(errors.New("cannot watch the network connections of the command: its process ended during the set-up"), err)
	case text[1] == 1:
		last := len(files) - 1
		w.notifications, files = files[last], files[:last]
	}
	return files, nil
}

func (w *syscallWatcher) startServersAndWatch(network *CommandWatch, namespaceSockets []*os.File) error {
	var err error
	if w.wake[0], w.wake[1], err = os.Pipe(); err != nil {
		return err
	}
	if w.OwnNetwork {
		if w.NoNetwork && w.notifications == nil {
			return errNestedStrict
		}
		table, err := os.Open(process(w.PID).procFile("net/tcp")) // the table shows the namespace even after the process has exited
		if err == nil {
			w.Log.setTCPConnectionTable(table)
			err = w.serveDNSAndOpenListeners(network, namespaceSockets)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case w.notifications != nil:
		w.tasks.Go(w.decideSyscallsUntilClosed) // returns when Close closes wake
	case !w.ExpectsReal:
		w.poller = StartRealClaudePoller(w.Log, w.OwnFiles)
	}
	return nil
}

func (w *syscallWatcher) serveDNSAndOpenListeners(network *CommandWatch, namespaceSockets []*os.File) error {
	if len(namespaceSockets) < 2 {
		return errors.New("cannot watch the network connections of the command: the process that starts it sent no sockets")
	}
	for _, file := range namespaceSockets[2:] {
		conn, err := net.FilePacketConn(file)
		if err != nil {
			return err
		}
		w.servers = append(w.servers, conn)
		w.tasks.Go(func() { w.resolver.answerQueriesUntilClosed(conn) }) // returns when Close closes the socket
	}
	var err error
	for i, to := range []*net.Listener{&network.API, &network.Proxy} {
		if *to, err = net.FileListener(namespaceSockets[i]); err != nil {
			return err
		}
	}
	return nil
}

// StartWaitingCommand lets the command start.
func (n *CommandWatch) StartWaitingCommand() error {
	if _, err := unix.Write(int(n.w.link.Fd()), []byte{1}); err != nil {
		return fmt.Errorf("starting the command in its network namespace: %w", err)
	}
	return nil
}

// Close stops watching. If processes are polled, it first scans them once more. If system calls are watched, processes that still
// run can make no more connections, because nothing permits their calls.
func (n *CommandWatch) Close() {
	w := n.w
	w.poller.ScanOnceMoreAndStop()
	for _, s := range w.servers {
		_ = s.Close() // no data was written to s
	}
	for _, f := range []*os.File{w.wake[1], w.link} {
		f.Close()
	}
	w.tasks.Wait()
	for _, f := range []*os.File{w.wake[0], w.notifications} {
		f.Close() // nil files too
	}
}

// pendingSyscall is a system call that waits for a decision: struct seccomp_notif.
type pendingSyscall struct {
	ID         uint64
	PID, Flags uint32
	NR         int32
	Arch       uint32
	IP         uint64
	Args       [6]uint64
}

// syscallDecision is the decision about a [pendingSyscall], in the form of struct seccomp_notif_resp.
type syscallDecision struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// decideSyscallsUntilClosed decides about system calls until wake is closed or no watched process is left.
func (w *syscallWatcher) decideSyscallsUntilClosed() {
	calls, wake := int32(w.notifications.Fd()), int32(w.wake[0].Fd())
	for {
		fds := []unix.PollFd{{Fd: calls, Events: unix.POLLIN}, {Fd: wake, Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[1].Revents != 0 || fds[0].Revents != unix.POLLIN {
			return
		}
		var c pendingSyscall
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(calls), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&c))); errno != 0 {
			continue // the caller has exited
		}
		v := syscallDecision{ID: c.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if errno := w.decideSyscall(&c); errno != 0 {
			v.Flags, v.Error = 0, -int32(errno)
		}
		// An error means that the caller has exited.
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(calls), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
	}
}

// decideSyscall returns the error for a system call; 0 means that the call is allowed.
func (w *syscallWatcher) decideSyscall(c *pendingSyscall) unix.Errno {
	who := process(c.PID)
	switch c.NR {
	case unix.SYS_EXECVE:
		w.recordIfRealClaudeStarts(who, readString(who, c.Args[0]), c.Args[1])
		return 0
	case unix.SYS_EXECVEAT:
		w.recordIfRealClaudeStarts(who, resolveAt(who, c.Args[0], readString(who, c.Args[1])), c.Args[2])
		return 0
	}
	const most = 128 // size of struct sockaddr_storage in bytes
	return w.refuseConnectUnlessLocal(who, readMemory(who, c.Args[1], int(min(c.Args[2], most))))
}

// resolveAt returns the path of a file that is given relative to a descriptor of a process.
func resolveAt(caller process, fd uint64, path string) string {
	at := int32(uint32(fd))
	if at == unix.AT_FDCWD || filepath.IsAbs(path) {
		return path
	}
	dir, _ := os.Readlink(caller.procFile(fmt.Sprintf("fd/%d", at))) // the process still exists, because it is blocked in the call
	return filepath.Join(dir, path)
}

func (w *syscallWatcher) refuseConnectUnlessLocal(caller process, raw []byte) unix.Errno {
	if len(raw) < 2 {
		return 0 // the kernel rejects the call
	}
	var at netip.AddrPort
	switch family := binary.NativeEndian.Uint16(raw); {
	case family == unix.AF_UNIX && isNameServiceSocket(string(raw[2:])):
		return unix.ECONNREFUSED
	case family == unix.AF_INET && len(raw) >= 8:
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:]))
	case family == unix.AF_INET6 && len(raw) >= 24:
		at = netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), binary.BigEndian.Uint16(raw[2:]))
	default:
		return 0
	}
	if addr := at.Addr(); addr.IsLoopback() || addr.IsUnspecified() || at.Port() == dnsPort {
		return 0
	}
	if at.Port() > 0 && !w.ExpectsReal {
		w.Log.recordExternalConnectionAsBreach(caller.threadLeader(), w.resolver.nameOf(at.Addr()), at.String(), w.OwnFiles)
	}
	return unix.ENETUNREACH
}

// isNameServiceSocket reports whether a socket file belongs to a name service, which would resolve names outside the network.
func isNameServiceSocket(socketPath string) bool {
	socketPath, _, _ = strings.Cut(socketPath, "\x00")
	return strings.HasSuffix(socketPath, "/nscd/socket") || strings.Contains(socketPath, "/systemd/resolve/")
}

func (p process) threadLeader() process {
	status, _ := os.ReadFile(p.procFile("status")) // the process still exists, because it is blocked in the call
	for line := range strings.Lines(string(status)) {
		var n int
		if _, err := fmt.Sscanf(line, "Tgid: %d", &n); err == nil {
			return process(n)
		}
	}
	return p
}

// recordIfRealClaudeStarts records a program that is being started, if it is a real claude.
// argvAddress is the address of its argument list in the memory of the calling process.
func (w *syscallWatcher) recordIfRealClaudeStarts(caller process, programPath string, argvAddress uint64) {
	if w.ExpectsReal {
		return
	}
	dir, _ := os.Readlink(caller.procFile("cwd")) // the process still exists, because it is blocked in the call
	words := []string{programPath}
	for i := uint64(1); i < maxExaminedCommandWords; i++ {
		ptr := readMemory(caller, argvAddress+i*8, 8)
		if len(ptr) < 8 || binary.NativeEndian.Uint64(ptr) == 0 {
			break
		}
		words = append(words, readString(caller, binary.NativeEndian.Uint64(ptr)))
	}
	if file := w.programs.realClaudeOfCommandLine(w.OwnFiles, words, dir); file != "" {
		caller = caller.threadLeader()
		w.Log.addBreach(Breach{Kind: BreachRealClaude, PID: int(caller), Text: fmt.Sprintf("a real claude was started: %s, by %s", file, caller)})
	}
}

func readMemory(caller process, at uint64, n int) []byte {
	file, err := os.Open(caller.procFile("mem"))
	if err != nil {
		return nil
	}
	defer file.Close()
	buf := make([]byte, n)
	n, _ = file.ReadAt(buf, int64(at)) // reads fewer bytes at the end of a mapping
	return buf[:n]
}

func readString(caller process, at uint64) string {
	s, _, _ := strings.Cut(string(readMemory(caller, at, unix.PathMax)), "\x00")
	return s
}
