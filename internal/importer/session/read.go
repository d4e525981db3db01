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
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Options configure Read. The zero value is ready to use.
type Options struct {
	Branch   string   // the id of a transcript line on the branch to follow; empty means the newest branch
	Contents bool     // keeps the contents of files that were read
	Progress Progress // receives the progress of reading; nil means none
}

// Progress receives the progress of reading.
type Progress interface {
	// ReportRead is called with the number of bytes of a file that were read so far.
	ReportRead(n int64)
}

// Read reads recordings of sessions. It merges recordings of one session, and prefers the most detailed data.
func Read(files []string, o Options) ([]*Session, error) {
	r := newSessionRecordingReader(o)
	var errs []error
	for _, name := range withAgentFiles(files) {
		if err := r.readFile(name); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r.resolveSessions()
}

type sessionRecordingReader struct {
	o           Options
	set         *sessionSet
	transcripts []*transcriptReader // resolved after all of their lines are read
	traffic     *apiTrafficReader
}

func newSessionRecordingReader(options Options) *sessionRecordingReader {
	s := &sessionSet{byID: map[string]*sessionBuilder{}, keepContents: options.Contents}
	return &sessionRecordingReader{o: options, set: s, traffic: &apiTrafficReader{set: s, reader: history.NewRequestReader(1024), conversations: map[string]*apiTrafficConversation{}}}
}

func (r *sessionRecordingReader) resolveSessions() ([]*Session, error) {
	for _, t := range r.transcripts {
		if err := t.importLinesOfBranch(r.o.Branch); err != nil {
			return nil, err
		}
	}
	r.traffic.recordFailuresAndLinkAgents()
	return r.set.mergeAndFinishSessions()
}

// withAgentFiles returns the files and the sub-agent files that belong to each transcript.
func withAgentFiles(files []string) []string {
	var all []string
	for _, name := range files {
		all = append(all, name)
		agents, err := filepath.Glob(filepath.Join(strings.TrimSuffix(name, ".jsonl"), "subagents", "agent-*.jsonl"))
		if err != nil {
			continue // a name with brackets is not a valid pattern; such files must be given explicitly
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

// lineFormat parses the lines of one kind of file.
type lineFormat interface {
	// parseLine parses one line. The error explains why the line does not have this format.
	parseLine(at Place, raw []byte) error
}

const expectedFormats = "neither a transcript (lines with parentUuid or sessionId), nor a stream-json log (type and session_id), " +
	"nor a journal of claudeless (time, pid and type), nor a tape of an SDK (frames with a direction)"

func (r *sessionRecordingReader) readFile(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return &Error{Place{File: name}, diag.FileErrorTextWithoutPath(err)}
	}
	if info.IsDir() {
		return &Error{Place{File: name}, "is a directory; give the .jsonl files in it"}
	}
	f, err := diag.OpenUnlessDevice(name)
	if err != nil {
		return &Error{Place{File: name}, diag.FileErrorTextWithoutPath(err)}
	}
	defer f.Close()
	return r.read(name, f)
}

// read reads the lines of a file, which end at line feeds only. The first line determines the format, so it is an error
// if the first line cannot be read. Later lines that cannot be read are skipped and counted.
func (r *sessionRecordingReader) read(name string, file io.Reader) error {
	in := bufio.NewReaderSize(file, 1<<20)
	start, _ := in.Peek(in.Size())
	if first, _, _ := bytes.Cut(start, []byte("\n")); bytes.IndexByte(first, 0) >= 0 { // first may be incomplete
		return &Error{Place{File: name}, "is binary: " + expectedFormats}
	}
	into := &lineReader{sessionRecordingReader: r}
	var line []byte
	total := int64(0)
	for n := 1; ; n++ {
		var size int64
		var err error
		line, size, err = readLine(in, line[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return &Error{Place{name, n}, diag.FileErrorTextWithoutPath(err)}
		}
		total += size
		if r.o.Progress != nil {
			r.o.Progress.ReportRead(total)
		}
		if failed := into.parse(Place{name, n}, line, size); failed != nil {
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

type lineReader struct {
	*sessionRecordingReader
	format lineFormat // nil until the first line is known
	lines  int
	damage DamagedLineSummary
}

// parse reads one line of a file. size is the length of the line in the file. If size exceeds maxLineBytes, line is
// incomplete and is skipped. Only an invalid first line is an error; other invalid lines are counted and skipped.
func (l *lineReader) parse(at Place, line []byte, size int64) error {
	raw := bytes.TrimSpace(line)
	if len(raw) == 0 && size <= maxLineBytes {
		return nil
	}
	tooLong := size > maxLineBytes
	if l.format == nil {
		if tooLong {
			return &Error{at, errTooLong.Error()}
		}
		if l.format = l.newFormatReader(at, raw); l.format == nil {
			return &Error{Place{File: at.File}, unknownFormatReason(raw) + expectedFormats}
		}
	}
	err := errTooLong
	if !tooLong {
		err = l.format.parseLine(at, raw)
	}
	if err == nil {
		l.lines++
		l.damage.LastLineDamaged = false
		return nil
	}
	l.damage.addError(&Error{at, err.Error()})
	if n := len(l.transcripts); n > 0 && l.transcripts[n-1].file == at.File {
		l.transcripts[n-1].hasDamage = true
	}
	return nil
}

// maxLineBytes bounds a line. A message is at most an API request (32 MB), and a transcript may contain a result twice.
const maxLineBytes = 64 << 20

var errTooLong = fmt.Errorf("the line is longer than %d MB", maxLineBytes>>20)

// readLine reads a line including its line feed into line, and returns its size. A line over the limit is not kept.
func readLine(in *bufio.Reader, line []byte) (kept []byte, size int64, err error) {
	kept, _, err = plainjson.ReadLine(in, line, maxLineBytes, func(part []byte) { size += int64(len(part)) })
	return kept, size + int64(len(kept)), err
}

func unknownFormatReason(raw []byte) string {
	if !json.Valid(raw) {
		return "does not begin with a line of JSON: "
	}
	return "is JSON in an unknown format: "
}

// newFormatReader returns a reader for the format that the first line of a file shows; nil means unknown. It also adds the reader
// of a transcript to r.transcripts.
func (r *sessionRecordingReader) newFormatReader(at Place, firstLine []byte) lineFormat {
	stream := &streamReader{set: r.set, source: "stream"}
	if firstLine[0] == '[' {
		return streamEventArrayReader{stream}
	}
	var head struct {
		Type, SessionID              string
		Session                      *string `json:"session_id"`
		ParentUUID                   json.RawMessage
		Time                         string
		PID                          *int
		Dir, Direction, From, Stream json.RawMessage
	}
	if json.Unmarshal(firstLine, &head) != nil {
		return nil
	}
	switch {
	case head.Time != "" && head.PID != nil && head.Type != "":
		return &journalReader{set: r.set, traffic: r.traffic, mode: map[int]string{}, cwd: map[int]string{}, environ: map[int][]string{}}
	case head.Dir != nil || head.Direction != nil || head.From != nil || head.Stream != nil || frameInTapeLine(firstLine) != nil:
		stream.source = "tape"
		return objectWrappedFrameReader{stream}
	case head.Type == "":
		return nil
	case head.ParentUUID != nil || head.SessionID != "" || head.Type == "summary" || head.Type == "file-history-snapshot":
		t := &transcriptReader{set: r.set, file: at.File, agent: agentIDFromFileName(at.File), parent: map[string]string{}, texts: map[string]string{}}
		r.transcripts = append(r.transcripts, t)
		return t
	case head.Session != nil || slices.Contains(eventTypesThatIdentifyStreams[:], head.Type):
		return stream
	}
	return nil
}

// streamEventArrayReader reads a log whose events are in one array.
type streamEventArrayReader struct{ *streamReader }

func (r streamEventArrayReader) parseLine(at Place, raw []byte) error {
	var events []json.RawMessage
	if err := json.Unmarshal(raw, &events); err != nil {
		return errors.New(`the line begins with "[" but is not a JSON array of events`)
	}
	for _, ev := range events {
		if err := r.streamReader.parseLine(at, ev); err != nil {
			return err
		}
	}
	return nil
}
