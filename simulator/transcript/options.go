package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options specifies which session to open and how to write it. StateDir, CWD and Clock suffice for a new session.
type Options struct {
	StateDir string // contains projects/ and claudeless/
	CWD      string // absolute; this package resolves its symbolic links
	Project  string // directory after which the project folder is named; empty means CWD
	ID       string // --session-id; it is an error if a conversation with this id exists
	// DefaultID is the id of a new session if ID is empty; "" means a new id. If its transcript exists, it is continued.
	DefaultID string
	// RestartIDs makes NewID return new ids for the n-th run with the same seed, because every run with a seed begins
	// with the same ids. It is called if the id of a new session is already used. Nil means that ids never repeat.
	RestartIDs func(n int)

	Resume    string  // --resume: session id, path of a .jsonl file, or title
	ResumeAt  string  // --resume-session-at: uuid of the last line to keep
	DropsTurn *string // --resume-drops-turn: uuid of the first prompt after ResumeAt; nil means not given
	Continue  bool    // --continue: the most recent session of CWD, or a fresh one
	Fork      bool    // --fork-session: continue in a copy with a new id
	NoPersist bool    // --no-session-persistence: write nothing

	Version    string // version of the simulated CLI; empty means the default
	Entrypoint string // empty means sdk-cli
	Agent      string // --agent; empty means none
	Title      string // --name; empty means none
	Machine    SessionEnvironment
	// Commit and PR are the texts with which the model ends commit messages and pull requests; nil means the default
	// text. If both are "", the model gets no instruction about them.
	Commit, PR *string
	Context    ContextSource                  // nil means that nothing is known about the model
	Clock      ClockWithIDs                   // required
	OnLine     func(path string, line []byte) // receives each written line, in order, without its newline (--session-mirror); nil or NoPersist means none
}

// ClockWithIDs provides time and ids (UUID v4).
type ClockWithIDs interface {
	Now() time.Time
	NewID() string
}

// ContextSource provides the current context of the model.
type ContextSource interface {
	// SessionContext returns the context of a sub-agent; an empty id means the main conversation.
	SessionContext(agentID string) SessionContext
	CurrentModel(agentID string) CurrentModel
	// AgentWorktreeOrChangedDir returns the worktree in which an agent works; empty means the directory of the session. For the main
	// conversation, it returns the directory in which commands run now; empty means the directory at the start.
	AgentWorktreeOrChangedDir(agentID string) string
	// GitStatus returns the state of the repository for the model; empty if the model does not receive it.
	GitStatus(agentID string) string
	// RequestContext returns what requests to the model contain in addition to messages.
	RequestContext(agentID string) RequestContext
}

// fileCheckpointer is a [ContextSource] that also records the state of files. In a terminal session, it is called
// before the lines of a prompt are written.
type fileCheckpointer interface{ RecordFilesBeforePrompt(promptUUID string) }

// CurrentModel describes the current model.
type CurrentModel struct {
	Name          string // display name, as used in commit messages
	Effort        string // effort level; empty means that the model has none
	PerTurnEffort bool   // the level can change from turn to turn
}

// RequestContext describes the requests that a conversation sends to the model.
type RequestContext struct {
	Params protocol.RequestParams
	Source string // conversation that sends the request: "sdk", "agent:builtin:Explore" …
	// Tools are the tools of the conversation. Those whose names are in Deferred are in requests only after ToolSearch has loaded them.
	Tools          []protocol.Tool
	Deferred       []string
	Placeholder    bool                   // true if requests contain one tool that represents all deferred tools
	SystemTurns    bool                   // true if the model takes reminders as separate messages, not as text blocks in user messages
	MessageConfig  *protocol.OutputConfig // part of the request's configuration that the first system message repeats; nil means none
	AdditionalDirs []string               // the working directories in addition to that of the session
	ChecksCalls    bool                   // a classifier decides whether calls of the model may run
	Remaining      protocol.RemainingLimits
	NoSystemPrompt bool   // the system prompt is empty, apart from its introduction
	AnthropicAPI   bool   // true if requests go to the API of Anthropic, which can cache a larger part of a request
	PromptCache    string // how long prompts stay in the cache: "5m", "1h", or "off"
}

// SessionEnvironment describes the computer in the environment attachment of a transcript.
type SessionEnvironment struct {
	Platform                    string // "linux"
	OSVersion, GitBranch, Shell string
	IsGitRepo                   bool
	IsTerminal                  bool                      // a user types the prompts in a terminal
	IsBare                      bool                      // --bare: the model receives no context in addition to prompts
	IsWorktree                  bool                      // the directory is a linked git worktree
	Worktree                    *protocol.WorktreeSession // worktree in which the session was started; nil means none
}

// SessionContext is context for the model in addition to the first prompt. Nil lists are omitted.
type SessionContext struct {
	Model           string
	ModelName       string // display name; empty means unknown
	Signature       string // name with which commits are signed
	KnowledgeCutoff string // month of the knowledge cutoff; empty means unknown
	TempDir         string // directory of the session's temporary files
	// ShellMode is the permission mode; in some modes, the model is asked to prefer Bash. It is empty if the model does not have
	// both Bash and Edit. NoCommitTexts is true if the model gets no instruction about the end of commits and pull requests.
	ShellMode     protocol.PermissionMode
	NoCommitTexts bool
	// BashSteer is how strongly the model is asked to prefer Bash: "relaxed", "strict", or "" for not at all.
	// ExplainsAuto is true if mode auto is explained to the model even if BashSteer is empty.
	BashSteer      string
	ExplainsAuto   bool
	Deferred       []string     // tools of which the model receives only the names
	Agents         []ListedItem // agents listed for the tool Agent
	AdditionalDirs []string     // working directories in addition to that of the session
	Remaining      protocol.RemainingLimits
	Skills         []ListedItem // skills listed for the tool Skill
	// FailedServers and ServersToLogInTo are the MCP servers that are not connected; ServerInstructions have a text for each server with instructions.
	FailedServers      []FailedServer
	ServersToLogInTo   []string
	ServerInstructions []ListedItem
	Instructions       []InstructionFile
	Instructed         string               // the text of Instructions for the model
	OutputStyle        string               // empty means the default
	Launch             protocol.AgentLaunch // zero for the main conversation
	StyleInstructions  string
}

// InstructionFile is an instruction file that applies from the start, such as CLAUDE.md.
type InstructionFile struct {
	Path    string `json:"path"`
	Type    string `json:"type"` // "User", "Project" or "Local"
	Content string `json:"content"`
}

// FailedServer tells the model why an MCP server is not connected.
type FailedServer struct {
	Name  string `json:"name"`
	Error string `json:"error"`
	Code  string `json:"errorCode,omitempty"`
	Retry string `json:"willRetry,omitempty"` // "on_reach" for a remote server without headers; "" means that the model is not told of another attempt
}

// ListedItem is an agent or a skill as listed for the model, or the instructions of an MCP server.
type ListedItem struct {
	Name    string
	Text    string // a line such as "- name: what it is for", or the instructions below a heading
	BuiltIn bool
}

// NotFoundError means that no conversation matches the value of --resume. It has the message of the real CLI.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return "No conversation found with session ID: " + e.ID }

// InUseError means that --session-id names an existing conversation.
type InUseError struct{ ID string }

func (e *InUseError) Error() string { return "Session ID " + e.ID + " is already in use." }

// UnknownTitleError means that the value of --resume is neither a session id nor the title of a session.
type UnknownTitleError struct{ Value string }

func (e *UnknownTitleError) Error() string {
	return "Error: --resume requires a valid session ID or session title when used with --print. Usage: claude -p --resume <session-id|title>. Provided value " +
		fmt.Sprintf("%q", e.Value) + " is not a UUID and does not match any session title."
}

// AmbiguousTitleError means that several sessions have the title given to --resume.
type AmbiguousTitleError struct {
	Title    string
	Sessions []string // ids, each with the time of its last change, newest first
}

func (e *AmbiguousTitleError) Error() string {
	return fmt.Sprintf("Error: --resume %q matches %d sessions. Pass one of these session IDs to disambiguate:\n  %s",
		e.Title, len(e.Sessions), strings.Join(e.Sessions, "\n  "))
}

func (o Options) findTranscriptToResumeOrContinue() (string, error) {
	switch {
	case o.Resume != "":
		return o.findTranscriptByIDPathOrTitle()
	case o.Continue:
		for c := range o.transcriptsWithMessages() {
			return c.path, nil
		}
	}
	return "", nil
}

func (o Options) findTranscriptByIDPathOrTitle() (string, error) {
	switch {
	case isSessionID(o.Resume):
		return o.findInAnyProjectBySessionID(o.Resume)
	case strings.HasSuffix(o.Resume, ".jsonl"):
		path := o.Resume
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.CWD, path)
		}
		if t, err := readTranscript(path); err != nil || !t.hasConversation {
			return "", &NotFoundError{ID: o.Clock.NewID()}
		}
		return path, nil
	}
	return o.findPathByTitle()
}

// findPathByTitle returns the path of the project's transcript whose title is the value of --resume.
func (o Options) findPathByTitle() (string, error) {
	var named []transcriptFileInfo
	for c, t := range o.transcriptsWithMessages() {
		if strings.EqualFold(cmp.Or(t.title, t.aiTitle), strings.TrimSpace(o.Resume)) {
			named = append(named, c)
		}
	}
	switch len(named) {
	case 0:
		return "", &UnknownTitleError{Value: o.Resume}
	case 1:
		return named[0].path, nil
	}
	several := &AmbiguousTitleError{Title: o.Resume}
	for _, c := range named {
		several.Sessions = append(several.Sessions, strings.TrimSuffix(filepath.Base(c.path), ".jsonl")+
			"  (modified "+c.modTime.UTC().Format("2006-01-02T15:04:05.000Z")+")")
	}
	return "", several
}

func (o Options) findInAnyProjectBySessionID(id string) (string, error) {
	name := id + ".jsonl"
	paths := []string{filepath.Join(o.projectDir(), name)}
	projects := filepath.Join(o.StateDir, "projects")
	entries, _ := os.ReadDir(projects) // an unreadable folder counts as empty
	for _, e := range entries {
		paths = append(paths, filepath.Join(projects, e.Name(), name))
	}
	for _, path := range paths {
		if t, err := readTranscript(path); err == nil && t.hasConversation {
			return path, nil
		}
	}
	return "", &NotFoundError{ID: o.Resume}
}

// transcriptsWithMessages yields the transcripts of the project that contain a message. The last changed one comes first.
func (o Options) transcriptsWithMessages() iter.Seq2[transcriptFileInfo, *parsedTranscript] {
	return func(yield func(transcriptFileInfo, *parsedTranscript) bool) {
		for _, c := range transcriptFilesNewestFirst(o.projectDir()) {
			if t, err := readTranscript(c.path); err == nil && t.hasConversation && !yield(c, t) {
				return
			}
		}
	}
}

type transcriptFileInfo struct {
	path    string
	modTime time.Time
	size    int64
}

// transcriptFilesNewestFirst lists the transcripts in a folder, the most recently changed first.
func transcriptFilesNewestFirst(dir string) []transcriptFileInfo {
	entries, _ := os.ReadDir(dir) // a missing folder counts as empty
	var out []transcriptFileInfo
	for _, e := range entries {
		if !isSessionID(strings.TrimSuffix(e.Name(), ".jsonl")) || filepath.Ext(e.Name()) != ".jsonl" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			out = append(out, transcriptFileInfo{filepath.Join(dir, e.Name()), info.ModTime(), info.Size()})
		}
	}
	slices.SortFunc(out, func(a, b transcriptFileInfo) int {
		return cmp.Or(b.modTime.Compare(a.modTime), cmp.Compare(a.path, b.path))
	})
	return out
}

const maxSlugLength = 200

// Slug returns the name of a directory's project folder. Symbolic links in realpath are resolved. Every UTF-16 unit outside
// [a-zA-Z0-9] becomes a dash. A name that is too long is cut, and a hash of the path is appended (spec: cli-contract 8.2).
func Slug(realpath string) string {
	var b strings.Builder
	var hash int32
	for _, unit := range utf16.Encode([]rune(realpath)) {
		hash = hash*31 + int32(unit)
		switch {
		case unit >= 'a' && unit <= 'z', unit >= 'A' && unit <= 'Z', unit >= '0' && unit <= '9':
			b.WriteByte(byte(unit))
		default:
			b.WriteByte('-')
		}
	}
	if b.Len() <= maxSlugLength {
		return b.String()
	}
	magnitude := int64(hash)
	if magnitude < 0 {
		magnitude = -magnitude
	}
	return b.String()[:maxSlugLength] + "-" + strconv.FormatInt(magnitude, 36)
}

func isSessionID(s string) bool {
	return len(s) == 36 && uuid.Validate(s) == nil // uuid.Validate alone also accepts other notations
}

func (o Options) projectDir() string { return filepath.Join(o.StateDir, "projects", Slug(o.Project)) }

// SessionInfo describes a saved session for a list of sessions.
type SessionInfo struct {
	ID, Title, Branch string // Title is the first prompt if the session has no title
	Changed           time.Time
	Size              int64 // size of the transcript in bytes
}

// Sessions returns the saved sessions of a project that contain a message. The last changed one comes first.
func Sessions(o Options) (all []SessionInfo) {
	o.Project, _ = filepath.EvalSymlinks(cmp.Or(o.Project, o.CWD)) // the directory exists, because a session has started in it
	for f, t := range o.transcriptsWithMessages() {
		var line struct{ GitBranch string }
		for _, e := range t.branchLines(t.lastConversationLine) {
			_ = json.Unmarshal(e.raw, &line) // every entry is a JSON object
		}
		id := strings.TrimSuffix(filepath.Base(f.path), ".jsonl")
		all = append(all, SessionInfo{id, cmp.Or(t.title, t.aiTitle, t.firstPromptTextOfBranch(t.lastConversationLine), "(session)"), line.GitBranch, f.modTime, f.size})
	}
	return all
}

type promptSnapshotTool struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Server      string               `json:"server,omitempty"`
	Schema      protocol.RequestTool `json:"schema"`
}

const (
	systemPromptIntroduction     = "You are a scripted model."
	systemPromptText             = "Answer as the scenario says."
	deferredToolsPlaceholderName = "DeferredToolPlaceholder"
)
