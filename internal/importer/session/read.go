package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// Options say how files are read. The zero value works.
type Options struct {
	// Branch is the id of a line of the branch to follow; empty = the newest.
	Branch string
	// Contents keeps what files held that were read.
	Contents bool
	// Progress is told how many bytes have been read; nil = nobody.
	Progress Progress
}

// Progress is told how far reading is.
type Progress interface {
	// Read is told how many bytes of a file have been read.
	Read(n int64)
}

// Read reads files of one session or more. What belongs to one session is
// joined: of two files that tell the same, the richer one counts.
func Read(files []string, o Options) ([]*Session, error) {
	r := newReading(o)
	var errs []error
	for _, name := range withAgents(files) {
		if err := r.file(name); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r.sessions()
}

// recordingReader is files on their way to become sessions.
type recordingReader struct {
	o   Options
	set *set
	// Transcripts are told apart from the rest: they are trees until all of
	// their lines are known.
	trees   []*transcriptReader
	traffic *trafficReader
}

func newReading(o Options) *recordingReader {
	s := &set{byID: map[string]*builder{}, contents: o.Contents}
	return &recordingReader{o: o, set: s, traffic: &trafficReader{set: s, reader: history.NewReader(1024), talks: map[string]*trafficConversation{}}}
}

func (r *recordingReader) sessions() ([]*Session, error) {
	for _, t := range r.trees {
		if err := t.resolve(r.o.Branch); err != nil {
			return nil, err
		}
	}
	r.traffic.finish()
	return r.set.sessions()
}

// withAgents adds the files of sub-agents that lie beside a transcript.
func withAgents(files []string) []string {
	var all []string
	for _, name := range files {
		all = append(all, name)
		agents, err := filepath.Glob(filepath.Join(strings.TrimSuffix(name, ".jsonl"), "subagents", "agent-*.jsonl"))
		if err != nil {
			continue // a name with brackets: then they are named by hand
		}
		all = append(all, agents...)
	}
	var once []string
	for _, name := range all {
		if clean := filepath.Clean(name); !slices.Contains(once, clean) {
			once = append(once, clean)
		}
	}
	return once
}

// format reads the lines of one kind of file.
type format interface {
	// line takes one line; an error says why it is none of the format.
	line(at Place, raw []byte) error
}

const looked = "neither a transcript (lines with parentUuid or sessionId), nor a stream-json log (type and session_id), " +
	"nor a journal of claudeless (time, pid and type), nor a tape of an SDK (frames with a direction)"

func (r *recordingReader) file(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return &Error{Place{File: name}, reason(err)}
	}
	if info.IsDir() {
		return &Error{Place{File: name}, "is a directory; name the .jsonl files in it"}
	}
	f, err := os.Open(name)
	if err != nil {
		return &Error{Place{File: name}, reason(err)}
	}
	defer f.Close()
	return r.read(name, f)
}

func reason(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// read takes the physical lines of a file: only a line feed ends one. A line that
// cannot be read is left out and counted, unless it is the first: by that one the
// format is known.
func (r *recordingReader) read(name string, file io.Reader) error {
	in := bufio.NewReaderSize(file, 1<<20)
	const head = 512
	if first, _ := in.Peek(head); bytes.IndexByte(first, 0) >= 0 { // a failure comes again
		return &Error{Place{File: name}, "is binary: " + looked}
	}
	into := &lineReader{recordingReader: r}
	var line []byte
	total := int64(0)
	for n := 1; ; n++ {
		var size int64
		var err error
		line, size, err = readLine(in, line[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return &Error{Place{name, n}, reason(err)}
		}
		total += size
		if r.o.Progress != nil {
			r.o.Progress.Read(total)
		}
		if failed := into.take(Place{name, n}, line, size); failed != nil {
			return failed
		}
		if err != nil {
			break
		}
	}
	switch d := into.damage; {
	case into.lines == 0 && d.Lines > 0:
		return d.First
	case into.lines == 0:
		return &Error{Place{File: name}, "is empty"}
	case d.Lines > 0:
		r.set.damaged = append(r.set.damaged, d)
	}
	return nil
}

// lineReader reads the lines of one file.
type lineReader struct {
	*recordingReader
	format format // nil until the first line is known
	lines  int    // that were read
	damage Damage
}

// take reads one line, of which size bytes were in the file. The error is that of
// a first line.
func (l *lineReader) take(at Place, line []byte, size int64) error {
	raw := bytes.TrimSpace(line)
	if len(raw) == 0 && size <= maxLine {
		return nil
	}
	tooLong := size > maxLine
	if l.format == nil {
		if tooLong {
			return &Error{at, errTooLong.Error()}
		}
		var unknown *Error
		if l.format, unknown = l.recordingReader.format(at, raw); unknown != nil {
			return unknown
		}
	}
	err := errTooLong
	if !tooLong {
		err = l.format.line(at, raw)
	}
	if err == nil {
		l.lines++
		l.damage.Last = false
		return nil
	}
	l.damage.add(&Error{at, err.Error()})
	if t, ok := l.format.(*transcriptReader); ok {
		t.damaged = true
	}
	return nil
}

// maxLine bounds a line, in bytes. A message is at most as large as a request of
// the API, which is 32 MB, and a transcript may hold a result twice.
const maxLine = 64 << 20

var errTooLong = fmt.Errorf("a line of more than %d MB", maxLine>>20)

// readLine reads a line with its line feed into line, and tells its size. Of a line
// over the bound nothing is kept.
func readLine(in *bufio.Reader, line []byte) (kept []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if line = append(line, part...); size > maxLine {
			line = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

func describe(raw []byte) string {
	if bytes.IndexByte(raw, 0) >= 0 {
		return "is binary: "
	}
	if !json.Valid(raw) {
		return "does not begin with a line of JSON: "
	}
	return "is JSON of another kind: "
}

func (r *recordingReader) format(at Place, raw []byte) (format, *Error) {
	if f := r.detect(at, raw); f != nil {
		return f, nil
	}
	return nil, &Error{Place{File: at.File}, describe(raw) + looked}
}

// detect tells by its first line what a file is; nil = none of those known.
func (r *recordingReader) detect(at Place, raw []byte) format {
	if raw[0] == '[' {
		return &listed{&streamReader{set: r.set}}
	}
	if raw[0] != '{' {
		return nil
	}
	var head struct {
		Type, SessionID              string
		Session                      *string `json:"session_id"`
		ParentUUID                   json.RawMessage
		Time                         string
		PID                          *int
		Dir, Direction, From, Stream json.RawMessage
	}
	if json.Unmarshal(raw, &head) != nil {
		return nil
	}
	switch {
	case head.Time != "" && head.PID != nil && head.Type != "":
		return &journalReader{set: r.set, traffic: r.traffic, mode: map[int]string{}, cwd: map[int]string{}, environ: map[int][]string{}}
	case head.Dir != nil || head.Direction != nil || head.From != nil || head.Stream != nil || unwrapped(raw) != nil:
		return &tapeReader{into: &streamReader{set: r.set}}
	case head.Type == "":
		return nil
	case head.ParentUUID != nil || head.SessionID != "" || head.Type == "summary" || head.Type == "file-history-snapshot":
		t := &transcriptReader{set: r.set, file: at.File, agent: agentOfFile(at.File), parent: map[string]string{}, texts: map[string]string{}}
		r.trees = append(r.trees, t)
		return t
	case head.Session != nil || slices.Contains(streamTypes[:], head.Type):
		return &streamReader{set: r.set}
	}
	return nil
}

// listed is a log whose events stand in one array.
type listed struct{ into *streamReader }

func (l *listed) line(at Place, raw []byte) error {
	var events []json.RawMessage
	if err := json.Unmarshal(raw, &events); err != nil {
		return errors.New("an array of events that ends too soon, or over several lines")
	}
	for _, ev := range events {
		if err := l.into.line(at, ev); err != nil {
			return err
		}
	}
	return nil
}
