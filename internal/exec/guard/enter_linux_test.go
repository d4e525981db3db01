//go:build amd64 || arm64

package guard

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// roleVariable is set in processes that tests start: they play a role instead of running the tests.
const roleVariable = "CLAUDELESS_GUARD_ROLE"

func TestMain(m *testing.M) {
	role, ok := map[string]func([]string) error{"enter": enterRole, "do": doSteps}[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // capabilities belong to a thread
	if err := role(os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// enterRole runs in a process that calls [ExecWithSyscallWatch]. The arguments before "--" are
// steps of [doSteps] or of the set-up. The words after it are the command.
func enterRole(args []string) error {
	at := slices.Index(args, "--")
	link, role, enter := 3, "", ExecWithSyscallWatch
	for _, arg := range args[:at] {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "network":
			enter = ExecWatchedInOwnNetwork
		case "link":
			link, err = strconv.Atoi(value)
		case "as":
			role = value
		default:
			err = doSteps([]string{arg})
		}
		if err != nil {
			return err
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, roleVariable+"=") })
	words := args[at+1:]
	return enter(link, words[0], words[1:], append(env, roleVariable+"="+role))
}

// doSteps performs steps and prints their results.
func doSteps(steps []string) error {
	for _, step := range steps {
		name, value, _ := strings.Cut(step, "=")
		var err error
		switch name {
		case "print":
			fmt.Println(value)
		case "dial":
			err = dial(value)
		case "lookup": // SERVER,NAME
			server, host, _ := strings.Cut(value, ",")
			fmt.Println(host, lookUp(server, host))
		case "names":
			err = serveNames(value)
		case "reap":
			err = reapOrphans()
		case "resolv": // uses a file in place of /etc/resolv.conf
			if err = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err == nil {
				err = unix.Mount(value, "/etc/resolv.conf", "", unix.MS_BIND, "")
			}
		case "taken":
			ln, listenErr := net.Listen("tcp4", value)
			held, err = append(held, ln), listenErr
		case "up":
			err = BringUpLoopback()
		case "capabilities":
			caps := map[string]uint32{"none": 0, "network": networkCaps, "all": networkCaps | 1<<unix.CAP_SYS_ADMIN}[value]
			head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			set := [2]unix.CapUserData{{Effective: caps, Permitted: caps, Inheritable: caps}}
			err = unix.Capset(&head, &set[0])
		case "watch":
			fmt.Println("can watch:", HasSyscallWatchPrivilege(), "has no network:", HasOnlyLoopbackInterfaces())
		case "execveat": // DIR,NAME
			err = execveat(value)
		default:
			err = fmt.Errorf("unknown step %q", step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// networkCaps are the capabilities that a network needs.
const networkCaps = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_BIND_SERVICE

// held keeps sockets from being closed.
var held []io.Closer

func dial(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		fmt.Println(addr, errors.Is(err, unix.ENETUNREACH))
		return nil
	}
	defer conn.Close()
	fmt.Println(conn.LocalAddr())
	_, err = io.Copy(os.Stdout, conn)
	return err
}

func lookUp(server, host string) any {
	r := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("udp", net.JoinHostPort(server, "53"))
	}}
	addrs, err := r.LookupNetIP(context.Background(), "ip4", host+".")
	if err != nil {
		return "has no address"
	}
	return addrs
}

// serveNames serves a name until it has printed what the name server says.
func serveNames(server string) error {
	conn, err := net.ListenPacket("udp", ":0") // starts the poller of Go's runtime
	if err != nil {
		return err
	}
	defer conn.Close()
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	if addInterfaceAddress("nowhere", netip.MustParseAddr("192.0.2.1")) == nil || bringUpInterface("nowhere") == nil || bringUpInterface(strings.Repeat("x", 100)) == nil {
		return errors.New("an interface that does not exist has been set up")
	}
	if err := BringUpLoopback(); err != nil {
		return err
	}
	names, err := ServeDNSNameAsLoopback("api.example")
	if err != nil {
		return err
	}
	_, again := ServeDNSNameAsLoopback("api.example")
	fmt.Println("api.example", lookUp(server, "api.example"), "other.example", lookUp(server, "other.example"), "again:", again)
	fmt.Println("closed:", names.Close(), lookUp(server, "api.example"), "twice:", names.Close() != nil)
	after, err := os.ReadDir("/proc/self/fd")
	if len(after) != len(before) {
		fmt.Println("descriptors before and after:", len(before), len(after))
	}
	return err
}

// execveat becomes a program that is named relative to an open directory.
func execveat(value string) error {
	dir, name, _ := strings.Cut(value, ",")
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	path, _ := unix.BytePtrFromString(name)
	argv := []*byte{path, nil}
	env := []*byte{nil}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])), 0, 0)
	return errno
}

// reapOrphans adopts three orphans and starts a Reaper that must not wait for one of them. It prints which of them the
// reaper waited for. The orphans start before the reaper, because it would also wait for their parents.
func reapOrphans() error {
	AdoptOrphans()
	orphan := func() (process, *os.File, error) { // a process whose parent has ended; it ends when the file is closed
		r, w, err := os.Pipe()
		if err != nil {
			return 0, nil, err
		}
		cmd := exec.Command("/bin/sh", "-c", "(exec <&3 3<&- >&- 2>&-; read -r x) & echo $!")
		cmd.ExtraFiles = []*os.File{r}
		out, err := cmd.Output()
		r.Close()
		pid, _ := strconv.Atoi(strings.TrimSpace(string(out)))
		return process(pid), w, err
	}
	early, endEarly, err := orphan()
	if err != nil {
		return err
	}
	own, endOwn, err := orphan()
	if err != nil {
		return err
	}
	late, endLate, err := orphan()
	if err != nil {
		return err
	}
	fmt.Println("adopted:", early.parent() == process(os.Getpid()), own.parent() == process(os.Getpid()))
	unsubscribed := 0
	r := StartReaper(func(c chan<- os.Signal, s ...os.Signal) func() {
		signal.Notify(c, s...)
		return func() { unsubscribed++ }
	}, []int{int(own)})
	endEarly.Close()
	for early.parent() != 0 { // until the reaper has waited for it
		runtime.Gosched()
	}
	endOwn.Close()
	for !HasEnded(int(own)) {
		runtime.Gosched()
	}
	signal.Reset(syscall.SIGCHLD)
	endLate.Close()
	for !HasEnded(int(late)) {
		runtime.Gosched()
	}
	r.ReapOnceMoreAndStop()
	r.ReapOnceMoreAndStop()
	fmt.Println("own one is left:", own.parent() != 0, "late one is left:", late.parent() != 0, "unsubscribed:", unsubscribed)
	StartReaper(nil, nil).ReapOnceMoreAndStop()
	lost, endLost, err := orphan()
	fmt.Println("adopted after the end:", lost.parent() == process(os.Getpid()))
	endLost.Close()
	(*OrphanReaper)(nil).ReapOnceMoreAndStop()
	return err
}

// isolation gives a child its own network, and rights to set it up and to use its own files.
func isolation() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN},
	}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// player is a process that plays a role.
type player struct {
	*exec.Cmd
	out   *bufio.Reader
	links []*os.File // our ends
}

// play starts a process with a role and a number of links. The test fails if the process has not
// exited when the test ends.
func play(t *testing.T, role string, links int, attr *syscall.SysProcAttr, args ...string) *player {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &player{Cmd: exec.Command(self, args...)}
	p.Env, p.SysProcAttr, p.Stderr = append(os.Environ(), roleVariable+"="+role), attr, os.Stderr
	for range links {
		ours, theirs, err := NewWatchLink()
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		p.links, p.ExtraFiles = append(p.links, ours), append(p.ExtraFiles, theirs)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		if attr != nil && errors.Is(err, unix.EPERM) {
			t.Skip("no network namespaces: ", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

// rest waits until the process has exited and returns the rest of its output.
func (p *player) rest(t *testing.T) string {
	t.Helper()
	all, err := io.ReadAll(p.out)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// join starts to watch a player and lets its command start. The watch ends with the test.
func (p *player) join(t *testing.T, link int, o WatchOptions) *CommandWatch {
	t.Helper()
	o.PID, o.Log = p.Process.Pid, cmp.Or(o.Log, &BreachCollector{})
	n, err := StartWatching(p.links[link], o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	if err := n.StartWaitingCommand(); err != nil {
		t.Fatal(err)
	}
	return n
}

// openFiles counts the open files of this program.
func openFiles(t *testing.T) int {
	t.Helper()
	conn, err := net.ListenPacket("udp", ":0") // starts the poller of Go's runtime, which has files too
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// needsWatch skips a test on systems where a watch needs more rights.
func needsWatch(t *testing.T) {
	t.Helper()
	if !HasSyscallWatchPrivilege() {
		t.Skip("this program may not watch system calls")
	}
}

// realScript writes a script that is recognised as a real claude and prints its arguments.
func realScript(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "node_modules/@anthropic-ai/claude-code", name)
	writeFile(t, path, "#!/bin/sh\necho real $*\n")
	return path
}

// A watched command runs as it would alone. Programs that it starts are examined before they run.
func TestEnter(t *testing.T) {
	needsWatch(t)
	script := realScript(t, "cli.js")
	started := func(by string) string { return "a real claude was started: " + script + ", by " + by }
	for _, tt := range []struct {
		name    string
		setup   []string
		words   []string
		out     string
		breach  string
		expects bool
	}{
		{name: "a harmless one", words: []string{"/bin/sh", "sh", "-c", "echo a b; [ ! -e /proc/$$/fd/3 ] || echo a link"}, out: "a b\n"},
		{name: "a real claude", words: []string{"/bin/sh", "sh", "-c", script + " -p hi; :"}, out: "real -p hi\n", breach: started("sh -c " + script + " -p hi; :")},
		{name: "one that is expected", words: []string{"/bin/sh", "sh", "-c", script + " -p hi; :"}, out: "real -p hi\n", expects: true},
		{name: "the sixth word", words: []string{"/bin/sh", "sh", "-c", "sh -u -u -u -u " + script + " x; :"}, out: "real x\n", breach: started("sh -c sh -u -u -u -u " + script + " x; :")},
		{name: "the seventh word", words: []string{"/bin/sh", "sh", "-c", "sh -u -u -u -u -u " + script + " x; :"}, out: "real x\n"},
		{name: "no words", words: []string{"/bin/sh", "sh", "-c", "cd " + filepath.Dir(script) + " && ./cli.js"}, out: "real\n", breach: started("sh -c cd " + filepath.Dir(script) + " && ./cli.js")},
		{
			name: "by a directory", setup: []string{"as=do"}, words: []string{"/proc/self/exe", "self", "execveat=" + filepath.Dir(script) + ",cli.js"}, out: "real\n",
			breach: started("self execveat=" + filepath.Dir(script) + ",cli.js"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := openFiles(t)
			p := play(t, "enter", 1, nil, append(append(tt.setup, "--"), tt.words...)...)
			var l BreachCollector
			n := p.join(t, 0, WatchOptions{Log: &l, ExpectsReal: tt.expects})
			if diff := gocmp.Diff(tt.out, p.rest(t)); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if err := p.Wait(); err != nil {
				t.Error(err)
			}
			n.Close()
			var texts []string
			for _, b := range l.Breaches() {
				texts = append(texts, b.Text)
			}
			if got := strings.Join(texts, "\n"); !strings.HasPrefix(got, tt.breach) || (got == "") != (tt.breach == "") {
				t.Errorf("breaches: %s", got)
			}
			if after := openFiles(t); after > before {
				t.Errorf("%d files are open, before %d", after, before)
			}
		})
	}
}

// A command that an outer run already watches is polled instead.
func TestEnterTwice(t *testing.T) {
	needsWatch(t)
	script := realScript(t, "cli.js")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, expects := range []bool{false, true} {
		p := play(t, "enter", 2, nil, "as=enter", "--", self, "self", "link=4", "--", "/bin/sh", "sh", "-c", "sh "+script+"; read -r x; :")
		var outer, inner BreachCollector
		p.join(t, 0, WatchOptions{Log: &outer})
		n := p.join(t, 1, WatchOptions{Log: &inner, ExpectsReal: expects})
		if (n.w.poller == nil) != expects {
			t.Errorf("polls: %v", n.w.poller != nil)
		}
		if got := p.rest(t); got != "real\n" || len(outer.Breaches()) != 1 {
			t.Errorf("%q, breaches %+v", got, outer.Breaches())
		}
	}
	p := play(t, "enter", 2, nil, "as=enter", "--", self, "self", "link=4", "--", "/bin/true")
	p.join(t, 0, WatchOptions{})
	if _, err := StartWatching(p.links[1], WatchOptions{PID: p.Process.Pid, Log: &BreachCollector{}, NoNetwork: true, OwnNetwork: true}); err == nil {
		t.Error("a network without sockets is joined")
	}
}

// A process that cannot be watched reports the reason and does not run the command.
func TestEnterFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		attr *syscall.SysProcAttr
		want string
	}{
		{"without rights", []string{"capabilities=none"}, nil, "watching system calls (seccomp): permission denied"},
		{"without rights to a network", []string{"capabilities=none", "network"}, isolation(), "setting up the network namespace: starting the loopback interface: operation not permitted"},
		{"with the first port taken", []string{"up", "taken=" + APIAddrInNamespace, "network"}, isolation(), "listen tcp4 " + APIAddrInNamespace + ": bind: address already in use"},
		{"with the second port taken", []string{"up", "taken=" + ProxyAddrInNamespace, "network"}, isolation(), "listen tcp4 " + ProxyAddrInNamespace + ": bind: address already in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := openFiles(t)
			p := play(t, "enter", 1, tt.attr, append(tt.args, "--", "/bin/echo", "echo", "started")...)
			_, err := StartWatching(p.links[0], WatchOptions{PID: p.Process.Pid, Log: &BreachCollector{}, OwnNetwork: tt.attr != nil})
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if got := p.rest(t); strings.Contains(got, "started") {
				t.Errorf("output: %s", got)
			}
			_ = p.Wait() // it closes the pipe
			if after := openFiles(t); after > before {
				t.Errorf("%d files are open, before %d", after, before)
			}
		})
	}
	needsWatch(t)
	p := play(t, "enter", 1, nil, "--", "/bin/echo", "echo", "started")
	if _, err := io.ReadFull(p.links[0], make([]byte, watchLinkHeaderBytes)); err != nil { // it is ready
		t.Fatal(err)
	}
	p.links[0].Close()
	if got := p.rest(t); got != "cannot start the command: claudeless exec has ended\n" {
		t.Errorf("a parent that has ended: %q", got)
	}
	ours, theirs, err := NewWatchLink()
	if err != nil {
		t.Fatal(err)
	}
	ours.Close()
	if err := sendFilesOrErrorOverLink(int(theirs.Fd()), "", false, nil); err == nil {
		t.Error("a message was sent without a recipient")
	}
	theirs.Close()
}

// Messages that [ExecWithSyscallWatch] never sends are errors, and all files in them are closed.
func TestJoinRefuses(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	socket, err := ln.File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	fd, fs := int(null.Fd()), int(socket.Fd())
	for _, tt := range []struct {
		name  string
		send  func(link int) error
		wants string
	}{
		{"an error", func(link int) error { return sendFilesOrErrorOverLink(link, "no rights", false, nil) }, "no rights"},
		{"nothing", func(int) error { return nil }, "cannot watch the network connections of the command: its process ended during the set-up"},
		{"one byte", func(link int) error { _, err := unix.Write(link, []byte{0}); return err }, "cannot watch the network connections of the command: its process ended during the set-up"},
		{"a file that is missing", func(link int) error { _, err := unix.Write(link, []byte{3, 0}); return err }, "cannot watch the network connections of the command: its process ended during the set-up"},
		{"no sockets", func(link int) error { return sendFilesOrErrorOverLink(link, "", false, []int{fd}) }, "cannot watch the network connections of the command: the process that starts it sent no sockets"},
		{"files", func(link int) error { return sendFilesOrErrorOverLink(link, "", false, []int{fd, fd}) }, "socket operation on non-socket"},
		{"a file for a name server", func(link int) error { return sendFilesOrErrorOverLink(link, "", false, []int{fs, fs, fd}) }, "socket operation on non-socket"},
		{"no watch", func(link int) error { return sendFilesOrErrorOverLink(link, "", false, []int{fs, fs}) }, errNestedStrict.Error()},
	} {
		before := openFiles(t)
		ours, theirs, err := NewWatchLink()
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.send(int(theirs.Fd())); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		var l BreachCollector
		n, err := StartWatching(ours, WatchOptions{PID: os.Getpid(), Log: &l, OwnNetwork: true, NoNetwork: tt.name == "no watch"})
		if l.connectionTable != nil {
			l.connectionTable.Close()
		}
		if n != nil || err == nil || !strings.Contains(err.Error(), tt.wants) {
			t.Errorf("%s: %v, %v", tt.name, n, err)
		}
		if after := openFiles(t); after > before {
			t.Errorf("%s: %d files are open, before %d", tt.name, after, before)
		}
	}
}

// A command in its own network reaches the servers of the run. Every name has an address, and connections to it fail
// and are reported with the name.
func TestEnterNetwork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	writeFile(t, file, "search example\nnameserver\nnameserver here\nnameserver fe80::1%lo\nnameserver 192.0.2.53\nnameserver 127.0.0.9\nnameserver 192.0.2.53\noptions 192.0.2.54\n")
	before := openFiles(t)
	p := play(t, "enter", 1, isolation(), "resolv="+file, "capabilities=network", "as=do", "network", "--", "/proc/self/exe", "self",
		"dial="+APIAddrInNamespace, "lookup=192.0.2.53,api.anthropic.com", "lookup=127.0.0.9,other.example", "dial=198.18.0.1:443", "dial=198.18.0.2:80", "dial=192.0.2.99:80", "watch")
	var l BreachCollector
	n := p.join(t, 0, WatchOptions{Log: &l, OwnNetwork: true})
	conn, err := n.API.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if who := l.findPeer(conn.RemoteAddr().String()); who != process(p.Process.Pid) {
		t.Errorf("the peer is %d, want %d", who, p.Process.Pid)
	}
	fmt.Fprintln(conn, "hello")
	conn.Close()
	want := conn.RemoteAddr().String() + "\nhello\napi.anthropic.com [198.18.0.1]\nother.example [198.18.0.2]\n198.18.0.1:443 true\n198.18.0.2:80 true\n192.0.2.99:80 true\ncan watch: false has no network: true\n"
	if diff := gocmp.Diff(want, p.rest(t)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	var got []string
	for _, b := range l.Breaches() {
		text, _, _ := strings.Cut(b.Text, " self dial=")
		got = append(got, fmt.Sprint(b.Kind, b.PID == p.Process.Pid, " ", text))
	}
	if diff := gocmp.Diff([]string{
		"1 true a program tried to reach a model vendor's address api.anthropic.com:443:", "2 true other.example:80 was blocked when", "2 true 192.0.2.99:80 was blocked when",
	}, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
	_ = p.Wait() // it closes the pipe
	n.API.Close()
	n.Proxy.Close()
	n.Close()
	l.connectionTable.Close()
	if after := openFiles(t); after > before { // the collector may close files of earlier tests
		t.Errorf("%d files are open, before %d", after, before)
	}
	if err := n.StartWaitingCommand(); err == nil {
		t.Error("a command that has ended was released")
	}
}

// A command in its own network has no capabilities of its set-up, and starts no programs with more rights.
func TestEnterNetworkRights(t *testing.T) {
	for caps, want := range map[string]string{"network": "0000000000000000 1", "all": "0000000000000000 0"} {
		p := play(t, "enter", 1, isolation(), "capabilities="+caps, "network", "--", "/bin/sh", "sh", "-c", "while read -r k v; do case $k in CapAmb:) a=$v;; NoNewPrivs:) echo $a $v;; esac; done </proc/$$/status")
		p.join(t, 0, WatchOptions{OwnNetwork: true})
		if got := strings.TrimSpace(p.rest(t)); got != want {
			t.Errorf("capabilities %s: %q, want %q", caps, got, want)
		}
	}
}

// A name that is served resolves to this machine, and no other name resolves.
func TestServeName(t *testing.T) {
	for server, again := range map[string]string{"192.0.2.53": "setting up the network namespace: adding the address of the name server: file exists", "127.0.0.1": "listen udp 127.0.0.1:53: bind: address already in use"} {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		writeFile(t, file, "nameserver "+server+"\n")
		if server == "127.0.0.1" {
			writeFile(t, file, "# the default\n")
		}
		p := play(t, "do", 0, isolation(), "resolv="+file, "names="+server, "watch")
		want := "api.example [127.0.0.1] other.example has no address again: " + again + "\nclosed: <nil> has no address twice: true\ncan watch: true has no network: true\n"
		if diff := gocmp.Diff(want, p.rest(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", server, diff)
		}
	}
}

// A program that adopts orphans waits for those that end, and only for those.
func TestReaper(t *testing.T) {
	p := play(t, "do", 0, nil, "reap")
	want := "adopted: true true\nown one is left: true late one is left: false unsubscribed: 1\nadopted after the end: false\n"
	if diff := gocmp.Diff(want, p.rest(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
