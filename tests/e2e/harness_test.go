// Package e2e tests the breakpoint page in a real browser: Chromium, as packaged by Debian, against a claudeless
// process. It is a separate module so that the driver of the browser is not a dependency of the program.
//
// CHROMIUM names the browser (default: "chromium"). CLAUDELESS_BIN names a program to use instead of building one.
// -update rewrites the screenshots in docs/.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const root = "../.."

var update = flag.Bool("update", false, "rewrite the screenshots in docs/")

// patience is the time limit of everything that a test waits for.
const patience = 20 * time.Second

// program builds the binary once.
var program = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("CLAUDELESS_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	dir, err := os.MkdirTemp("", "claudeless-e2e-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "claudeless")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/claudeless")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: "go build: " + string(out), Err: err}
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	if bin, err := program(); err == nil && os.Getenv("CLAUDELESS_BIN") == "" {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(status)
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	home := t.TempDir()
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "IS_SANDBOX=1"}
	return cmd
}

// debugger is a running `claudeless debug`.
type debugger struct {
	t   *testing.T
	url string
	// allowRefusals allows its pages to send requests that are refused. The browser writes these to the console.
	allowRefusals bool
}

func startDebugger(t *testing.T, args ...string) *debugger {
	t.Helper()
	file := filepath.Join(t.TempDir(), "port")
	cmd := command(t, append([]string{"debug", "--port", "0", "--port-file", file}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	var port []byte
	waitUntil(t, "the port file", func() bool {
		port, _ = os.ReadFile(file)
		return len(port) > 0
	})
	return &debugger{t: t, url: "http://127.0.0.1:" + strings.TrimSpace(string(port))}
}

// waitUntil polls until a condition holds.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

type object = map[string]any

// rest sends a request to the debugger.
func (d *debugger) rest(method, path string, body any) object {
	d.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	req, err := http.NewRequest(method, d.url+path, bytes.NewReader(raw))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	var out object
	if err != nil || json.Unmarshal(text, &out) != nil || r.StatusCode >= 300 {
		d.t.Fatalf("%s %s: %s: %s", method, path, r.Status, text)
	}
	return out
}

func (d *debugger) breakpoint(name string) {
	d.t.Helper()
	d.rest("POST", "/api/breakpoints", object{"function_name": name, "after_behavior": "go"})
}

// call starts a call as an agent does and returns the id of its pause.
func (d *debugger) call(tool string, input any) string {
	d.t.Helper()
	begun := d.rest("POST", "/api/call/start", object{"client": "claudeless", "method_name": tool, "input": input, "session_id": "agent"})
	poll, _ := begun["poll_url"].(string)
	id := strings.TrimPrefix(poll, "/api/poll/")
	if id == "" {
		d.t.Fatalf("%s was not paused: %v", tool, begun)
	}
	go http.Get(d.url + poll + "?wait=60s") // so that its lease does not expire
	return id
}

// decision waits for the decision about a pause.
func (d *debugger) decision(id string) object {
	d.t.Helper()
	out := d.rest("GET", "/api/poll/"+id+"?wait=20s", nil)
	action, ok := out["action"].(object)
	if !ok {
		d.t.Fatalf("nothing was decided: %v", out)
	}
	return action
}

// page is a page in a separate browser tab.
type page struct {
	context.Context
	t *testing.T
}

// newTab returns a browser with one tab; more are further options.
func newTab(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	browser := os.Getenv("CHROMIUM")
	if browser == "" {
		browser = "chromium"
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(browser), chromedp.NoSandbox)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(opts, more...)...)
	tab, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() { cancel(); stop() })
	return tab
}

// open shows the page of the debugger.
func (d *debugger) open(width, height int64) *page {
	p := openPage(d.t, d.url+"/", width, height, d.allowRefusals)
	p.wait(`document.querySelector("#state").textContent === "live"`)
	return p
}

// openPage opens the page at url. The test fails if the page writes to the console or requests a URL outside the
// directory of url. allowRefusals allows refused requests.
func openPage(t *testing.T, url string, width, height int64, allowRefusals bool) *page {
	t.Helper()
	origin := url[:strings.LastIndex(url, "/")+1]
	tab := newTab(t)
	var mu sync.Mutex
	var wrong []string
	err := chromedp.Listen(tab, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			text, _ := json.Marshal(e.Args)
			wrong = append(wrong, "console: "+string(text))
		case *runtime.EventExceptionThrown:
			wrong = append(wrong, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if !allowRefusals || !strings.Contains(e.Entry.Text, "status of 400") {
				wrong = append(wrong, "log: "+e.Entry.Text+" "+e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, origin) && !strings.HasPrefix(u, "data:") {
				wrong = append(wrong, "request to "+u)
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(tab, log.Enable, cdp.Empty{})
	}
	if err == nil {
		_, err = chromedp.Call(tab, network.Enable, network.EnableParams{})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, expire := context.WithTimeout(tab, 2*time.Minute)
	t.Cleanup(expire)
	p := &page{ctx, t}
	p.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range wrong {
			t.Error(w)
		}
	})
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until a JavaScript expression is true, possibly on the next page.
func (p *page) wait(expr string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		holds, err := chromedp.Run(p, chromedp.Evaluate[bool](`!!(`+expr+`)`))
		if holds && err == nil {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("waited in vain for %s (%v); the page says:\n%s", expr, err, p.text("body"))
		}
	}
}

func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, `document.querySelector(`+quote(selector)+`)?.innerText ?? ""`)
}

func (p *page) value(selector string) string {
	p.t.Helper()
	return eval[string](p, `document.querySelector(`+quote(selector)+`).value`)
}

// replace replaces the content of a field by typing, as a user does.
func (p *page) replace(selector, text string) {
	p.t.Helper()
	p.do(chromedp.Focus(chromedp.CSS(selector)), chromedp.Evaluate[chromedp.Void](`document.querySelector(`+quote(selector)+`).select()`), chromedp.KeyEvent(text))
}

func (p *page) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func (p *page) dark() {
	p.t.Helper()
	_, err := chromedp.Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func eval[T any](p *page, expr string) T {
	p.t.Helper()
	v, err := chromedp.Run(p, chromedp.Evaluate[T](expr))
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return v
}

func quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// inPause returns the selector of an element in the card of a pause.
func inPause(pause, rest string) string { return `[data-pause-id="` + pause + `"] ` + rest }

// text returns the body of an answer, unchanged.
func (d *debugger) text(path string) string {
	d.t.Helper()
	r, err := http.Get(d.url + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(body)
}
