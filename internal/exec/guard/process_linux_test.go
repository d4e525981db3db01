package guard

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// child starts a shell that runs a script and waits for its input; the script must print "ready" when it waits.
func child(t *testing.T, args []string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh")
	cmd.Args, cmd.Env = args, append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it exits at the end of its input
	})
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	return cmd
}

const waits = "echo ready; read -r x"

// A process is described by its command line and by its ancestors, up to this program.
func TestLineage(t *testing.T) {
	mark := fmt.Sprintf("CLAUDELESS_TEST_MARK=%d", os.Getpid())
	cmd := child(t, []string{"sh", "-c", "sh -c '" + waits + "'; :"}, mark)
	outer := process(cmd.Process.Pid)
	below := Descendants(int(outer))
	if len(below) != 1 {
		t.Fatalf("descendants: %v", below)
	}
	inner := process(below[0])
	if diff := cmp.Diff([]process{inner, outer}, inner.lineage()); diff != "" || outer.parent() != process(os.Getpid()) {
		t.Errorf("parent %d, lineage (-want +got):\n%s", outer.parent(), diff)
	}
	want := fmt.Sprintf("sh -c %s, started by process %d (sh -c sh -c '%[1]s'; :)", waits, int(outer))
	if diff := cmp.Diff(want, inner.String()); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
	if all := Descendants(os.Getpid()); !slices.Contains(all, int(outer)) || !slices.Contains(all, int(inner)) {
		t.Errorf("descendants of this program: %v", all)
	}
	marked := ProcessesWithVariable(mark)
	slices.Sort(marked)
	both := []int{int(outer), int(inner)}
	slices.Sort(both)
	if diff := cmp.Diff(both, marked); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
	if own := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "_=") }); slices.Contains(ProcessesWithVariable(own[0]), os.Getpid()) {
		t.Error("this program is marked")
	}
	if env := Environ(int(outer)); !slices.Contains(env, mark) {
		t.Errorf("environment: %q", env)
	}
	if got := process(1 << 30).lineage(); len(got) != 1 {
		t.Errorf("a process that does not exist has the lineage %v", got)
	}
	for _, p := range []process{0, 1, process(os.Getpid())} {
		if got, want := p.String(), fmt.Sprintf("process %d", int(p)); got != want || p.lineage() != nil {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A process counts as ended if it does not exist, or if its exit code was not collected yet.
func TestEnded(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read -r x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if HasEnded(cmd.Process.Pid) {
		t.Error("it has ended before its input")
	}
	in.Close()
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if !HasEnded(cmd.Process.Pid) {
		t.Error("a zombie has not ended")
	}
	_ = cmd.Wait() // its exit code is that of read
	if !HasEnded(cmd.Process.Pid) || Environ(cmd.Process.Pid) != nil || Argv(cmd.Process.Pid) != nil {
		t.Error("it is still there")
	}
}

// A process counts as a claude because of the first two words of its command line or the path of
// its program. Files of claudeless do not count.
func TestIsClaude(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "claude")
	writeFile(t, script, waits)
	genuine := filepath.Join(dir, "node_modules/@anthropic-ai/claude-code/cli.js")
	writeFile(t, genuine, waits)
	for _, tt := range []struct {
		name string
		args []string
		own  ClaudelessFiles
		want bool
	}{
		{"by its name", []string{"/x/claude", "-c", waits}, ClaudelessFiles{}, true},
		{"by its script", []string{"sh", script}, ClaudelessFiles{}, true},
		{"an argument", []string{"sh", "-e", script}, ClaudelessFiles{}, false},
		{"an argument that is real", []string{"sh", "-e", genuine}, ClaudelessFiles{}, true},
		{"a real one further on", []string{"sh", "-c", waits, "x", genuine}, ClaudelessFiles{}, false},
		{"the double", []string{"sh", script}, ClaudelessFiles{Executable: script}, false},
		{"a shim", []string{"sh", script}, ClaudelessFiles{ShimDir: dir}, false},
		{"another program", []string{"sh", "-c", waits}, ClaudelessFiles{}, false},
		{"below a claude", []string{"/x/claude", "-c", "sh -c '" + waits + "'; :"}, ClaudelessFiles{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := child(t, tt.args)
			who := process(cmd.Process.Pid)
			if below := Descendants(int(who)); len(below) > 0 {
				who = process(below[0])
			}
			if got := who.isOrDescendsFromRealClaude(tt.own); got != tt.want {
				t.Errorf("%v, want %v: %s", got, tt.want, who)
			}
		})
	}
}

// The destination of a connection is reported by name if the name is known. A real claude is more serious than the
// address of a vendor, which is more serious than any other address.
func TestDialled(t *testing.T) {
	claude := child(t, []string{"/x/claude", "-c", waits})
	other := child(t, []string{"sh", "-c", waits})
	for _, tt := range []struct {
		name       string
		who        *exec.Cmd
		host, addr string
		want       Breach
	}{
		{"a claude", claude, "example.org", "198.18.0.1:443", Breach{BreachRealClaude, 0, "a real claude tried to reach example.org:443: /x/claude -c " + waits}},
		{"a vendor by name", other, "api.anthropic.com", "198.18.0.1:443", Breach{BreachVendorAccess, 0, "a program tried to reach a model vendor's address api.anthropic.com:443: sh -c " + waits}},
		{"a vendor by address", other, "", "160.79.104.10:443", Breach{BreachVendorAccess, 0, "a program tried to reach a model vendor's address 160.79.104.10:443: sh -c " + waits}},
		{"another", other, "", "8.8.8.8:53", Breach{BreachExternalNonVendorAddress, 0, "8.8.8.8:53 was blocked when sh -c " + waits + " tried to reach it"}},
	} {
		var l BreachCollector
		tt.want.PID = tt.who.Process.Pid
		for range 2 {
			l.recordExternalConnectionAsBreach(process(tt.who.Process.Pid), tt.host, tt.addr, ClaudelessFiles{})
		}
		if diff := cmp.Diff([]Breach{tt.want}, l.Breaches()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// findPeer finds the process at the other end of a connection. It reads the connection table of the
// run's network first.
func TestPeer(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", network)
		if err != nil {
			t.Logf("%s: %v", network, err) // not every machine has both
			continue
		}
		defer ln.Close()
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var l BreachCollector
		addr := conn.LocalAddr().String()
		if who := l.findPeer(addr); who != process(os.Getpid()) {
			t.Errorf("%s: held by %d", network, who)
		}
		l.RecordRealClaudeRequest(addr, "claude-cli/1")
		l.RecordRealClaudeRequest("127.0.0.1:x", "claude-cli/2")
		want := []Breach{
			{BreachRealClaude, os.Getpid(), fmt.Sprintf("a real claude sent a request: process %d", os.Getpid())},
			{BreachRealClaude, 0, "a real claude sent a request: claude-cli/2"},
		}
		if diff := cmp.Diff(want, l.Breaches()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", network, diff)
		}

		for _, tt := range []struct {
			text string
			want process
		}{{"", 0}, {tables(t), process(os.Getpid())}} {
			file := filepath.Join(t.TempDir(), "table")
			writeFile(t, file, tt.text)
			table, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			l.setTCPConnectionTable(table)
			for range 2 { // each time from its beginning
				if who := l.findPeer(addr); who != tt.want {
					t.Errorf("%s in a table of %d bytes: held by %d, want %d", network, len(tt.text), who, tt.want)
				}
			}
		}
	}
}

// tables returns the connection tables of this program.
func tables(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(name) // not every machine has both
		text.Write(table)
	}
	return text.String()
}

// The connections that a strict guard allows, and its findings about the others.
func TestDecideConnect(t *testing.T) {
	inet := func(addr string) []byte {
		at := netip.MustParseAddrPort(addr)
		if at.Addr().Is4() {
			raw := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
			return append(binary.BigEndian.AppendUint16(raw, at.Port()), at.Addr().AsSlice()...)
		}
		raw := binary.NativeEndian.AppendUint16(nil, unix.AF_INET6)
		return append(append(binary.BigEndian.AppendUint16(raw, at.Port()), 0, 0, 0, 0), at.Addr().AsSlice()...)
	}
	file := func(path string) []byte {
		return append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), path+"\x00"...)
	}
	for _, tt := range []struct {
		name string
		raw  []byte
		want unix.Errno
		told string // the address of the breach
	}{
		{"loopback", inet("127.0.0.1:80"), 0, ""},
		{"loopback of IPv6", inet("[::1]:80"), 0, ""},
		{"loopback in IPv6", inet("[::ffff:127.0.0.1]:80"), 0, ""},
		{"this machine", inet("0.0.0.0:80"), 0, ""},
		{"a name server", inet("8.8.8.8:53"), 0, ""},
		{"another machine", inet("8.8.8.8:80"), unix.ENETUNREACH, "8.8.8.8:80"},
		{"by IPv6", inet("[2001:db8::1]:80"), unix.ENETUNREACH, "[2001:db8::1]:80"},
		{"by a name", inet("198.18.0.1:80"), unix.ENETUNREACH, "example.org:80"},
		{"the choice of a way", inet("8.8.8.8:0"), unix.ENETUNREACH, ""},
		{"cut off", inet("8.8.8.8:80")[:7], 0, ""},
		{"IPv6, cut off", inet("[2001:db8::1]:80")[:23], 0, ""},
		{"nothing", nil, 0, ""},
		{"half a family", []byte{1}, 0, ""},
		{"no address", binary.NativeEndian.AppendUint16(nil, unix.AF_UNSPEC), 0, ""},
		{"a file", file("/run/x.sock"), 0, ""},
		{"a name service", file("/run/nscd/socket"), unix.ECONNREFUSED, ""},
		{"another one", file("/run/systemd/resolve/io.systemd.Resolve"), unix.ECONNREFUSED, ""},
	} {
		var l BreachCollector
		w := &syscallWatcher{resolver: newOfflineNameServer()}
		w.Log = &l
		w.resolver.getOrAssignAddr("example.org")
		if got := w.refuseConnectUnlessLocal(process(os.Getpid()), tt.raw); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		var want []Breach
		if tt.told != "" {
			want = []Breach{{BreachExternalNonVendorAddress, os.Getpid(), fmt.Sprintf("%s was blocked when process %d tried to reach it", tt.told, os.Getpid())}}
		}
		if diff := cmp.Diff(want, l.Breaches()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		w.ExpectsReal = true
		if got := w.refuseConnectUnlessLocal(process(os.Getpid()), tt.raw); got != tt.want || len(l.Breaches()) != len(want) {
			t.Errorf("%s, where a real claude is wanted: %v, %+v", tt.name, got, l.Breaches())
		}
	}
}

// A relative path is resolved in the directory of its process.
func TestFileAt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	here := unix.AT_FDCWD
	for _, tt := range []struct {
		fd         uint64
		path, want string
	}{{uint64(uint32(here)), "x", "x"}, {uint64(folder.Fd()), "/x", "/x"}, {uint64(folder.Fd()), "x", filepath.Join(dir, "x")}} {
		if got := resolveAt(process(os.Getpid()), tt.fd, tt.path); got != tt.want {
			t.Errorf("%d %s: %q, want %q", int32(tt.fd), tt.path, got, tt.want)
		}
	}
}

// The ancestors of a process are listed up to a maximum.
func TestLineageIsBounded(t *testing.T) {
	script := filepath.Join(t.TempDir(), "nest")
	writeFile(t, script, `if [ $1 = 0 ]; then `+waits+`; else sh $0 $(($1-1)); fi; :`)
	cmd := child(t, []string{"sh", script, "12"})
	below := Descendants(cmd.Process.Pid)
	if got := process(below[len(below)-1]).lineage(); len(below) != 12 || len(got) != maxAncestors || slices.Contains(got, process(cmd.Process.Pid)) {
		t.Errorf("%d descendants, lineage %v", len(below), got)
	}
}

// A thread belongs to its process.
func TestThreadLeader(t *testing.T) {
	self := process(os.Getpid())
	tasks, err := os.ReadDir(self.procFile("task"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name()) // the kernel writes numbers only
		if got := process(tid).threadLeader(); got != self && !HasEnded(tid) {
			t.Errorf("thread %d belongs to %d, not %d", tid, got, self)
		}
	}
	if got := process(1 << 30).threadLeader(); got != 1<<30 {
		t.Errorf("a thread that does not exist belongs to %d", got)
	}
}

// A poller finds the programs of a real claude by their files, while it runs and once more when it stops.
func TestPoller(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "@anthropic-ai/claude-code/claude.exe")
	script := filepath.Join(dir, "@anthropic-ai/claude-code/cli.js")
	writeFile(t, binary, string(shell))
	writeFile(t, script, waits)
	var l BreachCollector
	p := StartRealClaudePoller(&l, ClaudelessFiles{})
	found := func(cmd *exec.Cmd, file string) string {
		return fmt.Sprintf("%d a real claude was started: %s: %s", cmd.Process.Pid, file, process(cmd.Process.Pid))
	}
	var want []string
	for len(want) < 2 { // the second one starts after the first scan
		cmd := child(t, []string{"sh", script, fmt.Sprint(len(want))})
		want = append(want, found(cmd, script))
		for len(l.Breaches()) < len(want) {
			runtime.Gosched()
		}
	}
	p.ScanOnceMoreAndStop()
	last := &RealClaudePoller{log: &l, done: make(chan struct{})}
	cmd := exec.Command(binary, "-c", waits)
	cmd.Args[0] = "innocent"
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }() // the process exits at the end of its input
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	want = append(want, found(cmd, binary))
	last.ScanOnceMoreAndStop()
	last.ScanOnceMoreAndStop()
	p.ScanOnceMoreAndStop() // no scan runs after Stop
	var got []string
	for _, b := range l.Breaches() {
		got = append(got, fmt.Sprint(b.PID, " ", b.Text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}

// A zombie, about which nothing can be read, does not count as a real claude and does not hide the
// others.
func TestPollerSkipsZombies(t *testing.T) {
	cmd := exec.Command("/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	var l BreachCollector
	p := &RealClaudePoller{log: &l, done: make(chan struct{})}
	if n := p.scanAndRecordRealClaudes(); n < 1 || len(l.Breaches()) != 0 {
		t.Errorf("%d processes, breaches %+v", n, l.Breaches())
	}
	_ = cmd.Wait() // it has ended
}
