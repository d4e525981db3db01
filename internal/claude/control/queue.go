package control

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// queuedPrompt is one queued user frame, or several that share a turn.
type queuedPrompt struct {
	message  protocol.UserMessage
	priority int
	// startsAtOnce is set if the prompt arrived while nothing was running or queued: its turn
	// starts immediately, and later prompts get another turn.
	startsAtOnce bool
	// interruptedBeforeStart is set if the host interrupted the turn before it started. The turn still starts, but ends after a few events.
	interruptedBeforeStart bool
	// arrivedDuringInitialize is set if the prompt arrived during initialize. Its events follow the answer to initialize.
	arrivedDuringInitialize bool
	startEventWritten       bool // the event "started" was already written
	cancelled               bool
	// mergedPrompts are the prompts that were merged into this one, in order of arrival; prompts without a uuid are left out.
	// Without a merge, the prompt itself is the only part.
	mergedPrompts []protocol.UserMessage
}

func (in *queuedPrompt) isMergeable() bool {
	_, typed, _ := in.message.Content.SplitUserTypedText()
	return !in.interruptedBeforeStart && !strings.HasPrefix(typed, "/")
}

func (in *queuedPrompt) canMerge(next *queuedPrompt) bool {
	return !in.startsAtOnce && !next.startsAtOnce && in.isMergeable() && next.isMergeable() && in.priority == next.priority &&
		!in.message.NoQuery && !next.message.NoQuery && in.message.Synthetic == next.message.Synthetic &&
		bytes.Equal(in.message.Origin, next.message.Origin)
}

// appendPrompt appends the content of the prompt next to this prompt. If next has a uuid, it becomes the uuid of this prompt.
func (in *queuedPrompt) appendPrompt(next *queuedPrompt) {
	in.message.Content = joinContents(in.message.Content, next.message.Content)
	in.message.UUIDs = append(in.message.UUIDs, next.message.UUIDs...)
	in.mergedPrompts = append(in.mergedPrompts, next.mergedPrompts...)
	in.message.UUID = cmp.Or(next.message.UUID, in.message.UUID)
}

// joinContents appends one content to another. Content blocks are kept, but a text that follows a text begins on a new line.
func joinContents(a, b protocol.Content) protocol.Content {
	if a.Blocks == nil && b.Blocks == nil {
		return protocol.Content{Text: a.Text + "\n" + b.Text}
	}
	blocks, next := slices.Clone(blocksOf(a)), blocksOf(b)
	if last := len(blocks) - 1; last >= 0 && len(next) > 0 {
		text, endsInText := blocks[last].(protocol.TextBlock)
		if _, beginsWithText := next[0].(protocol.TextBlock); endsInText && beginsWithText {
			blocks[last] = protocol.Text(text.Text + "\n")
		}
	}
	return protocol.Content{Blocks: append(blocks, next...)}
}

func blocksOf(c protocol.Content) []protocol.Block {
	if c.Blocks == nil {
		return []protocol.Block{protocol.Text(c.Text)}
	}
	return c.Blocks
}

func (in *queuedPrompt) lifecycleEventPerUUID(newState string) []protocol.Event {
	var events []protocol.Event
	for _, id := range in.message.UUIDs {
		events = append(events, protocol.CommandLifecycleEvent(id, newState))
	}
	return events
}

type promptQueue struct {
	waiting   []*queuedPrompt
	seenUUIDs map[string]bool
}

// insertByPriority adds a prompt after those with the same or a higher priority.
func (q *promptQueue) insertByPriority(newPrompt *queuedPrompt) {
	at := len(q.waiting)
	for at > 0 && q.waiting[at-1].priority < newPrompt.priority {
		at--
	}
	q.waiting = slices.Insert(q.waiting, at, newPrompt)
}

// recordSeenUUID records a uuid and reports whether it was already recorded. It returns false for an empty uuid.
func (q *promptQueue) recordSeenUUID(promptUUID string) (wasSeenBefore bool) {
	if promptUUID == "" {
		return false
	}
	known := q.seenUUIDs[promptUUID]
	q.seenUUIDs[promptUUID] = true
	return known
}

// takeNextWithMerged removes the next prompt, merged with the following prompts that share its turn.
func (q *promptQueue) takeNextWithMerged(merge bool) *queuedPrompt {
	in := q.waiting[0]
	q.waiting = q.waiting[1:]
	for merge && len(q.waiting) > 0 && in.canMerge(q.waiting[0]) {
		in.appendPrompt(q.waiting[0])
		q.waiting = q.waiting[1:]
	}
	return in
}

// takeMatching removes and returns the waiting prompts that fulfil a condition.
func (q *promptQueue) takeMatching(condition func(*queuedPrompt) bool) (taken []*queuedPrompt) {
	q.waiting = slices.DeleteFunc(q.waiting, func(in *queuedPrompt) bool {
		isTaken := condition(in)
		if isTaken {
			taken = append(taken, in)
		}
		return isTaken
	})
	return taken
}

// removeByUUID removes a waiting prompt. It returns nil if none has this uuid.
func (q *promptQueue) removeByUUID(uuid string) *queuedPrompt {
	for _, found := range q.takeMatching(func(in *queuedPrompt) bool { return in.message.UUID == uuid && uuid != "" }) {
		return found // uuids differ
	}
	return nil
}

// promptUUIDs returns the uuids of the prompts that have one; never nil.
func promptUUIDs(prompts []*queuedPrompt) []string {
	ids := []string{}
	for _, in := range prompts {
		if in.message.UUID != "" {
			ids = append(ids, in.message.UUID)
		}
	}
	return ids
}

// userFrame is a prompt as the host sends it (spec: cli-contract 2).
type userFrame struct {
	Message *struct {
		Role    json.RawMessage `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	UUID        string          `json:"uuid"`
	Origin      json.RawMessage `json:"origin"`
	Priority    string          `json:"priority"`
	ShouldQuery *bool           `json:"shouldQuery"`
	Composed    bool            `json:"client_composed"`
	Synthetic   bool            `json:"isSynthetic"`
}

// parsePromptFrame converts a user frame into a prompt. If the content has the wrong type, it returns nil without an error,
// and the frame is ignored. Any other key with a value of the wrong type counts as missing.
func parsePromptFrame(line []byte) (prompt *queuedPrompt, err error) {
	f := plainjson.DecodeIgnoringErrors[userFrame](line) // the line is valid JSON; keys with values of the wrong type stay zero
	var role any = "undefined"
	if f.Message != nil && f.Message.Role != nil && (json.Unmarshal(f.Message.Role, &role) != nil || role == nil) {
		role = "null"
	}
	if role != "user" {
		return nil, invalidStdinLineErrorf("Error: Expected message role 'user', got '%v'", role)
	}
	content, ok := readUserPromptContent(f.Message.Content)
	if !ok {
		return nil, nil
	}
	in := &queuedPrompt{message: protocol.UserMessage{Content: content, UUID: f.UUID, Origin: originIfHuman(f.Origin), NoQuery: f.ShouldQuery != nil && !*f.ShouldQuery, Verbatim: f.Composed, Synthetic: f.Synthetic}}
	if f.UUID != "" {
		in.message.UUIDs = []string{f.UUID}
		in.mergedPrompts = []protocol.UserMessage{in.message}
	}
	switch f.Priority {
	case "now":
		in.priority = 1
	case "later":
		in.priority = -1
	}
	return in, nil
}

// readUserPromptContent reads a string or a list of objects. Missing content is an empty string.
func readUserPromptContent(raw json.RawMessage) (content protocol.Content, ok bool) {
	if !plainjson.IsSet(raw) {
		return content, true
	}
	var blocks []map[string]json.RawMessage
	if raw[0] == '[' && (json.Unmarshal(raw, &blocks) != nil || slices.ContainsFunc(blocks, func(b map[string]json.RawMessage) bool { return b == nil })) {
		return content, false
	}
	if content.UnmarshalJSON(raw) != nil {
		return content, false
	}
	for i, block := range content.Blocks {
		if image, is := block.(protocol.ImageBlock); is {
			content.Blocks[i] = imageBlockOrErrorText(image)
		}
	}
	return content, true
}

// imageBlockOrErrorText returns the image with the media type of its data, or a text that replaces data that is not an image.
func imageBlockOrErrorText(image protocol.ImageBlock) protocol.Block {
	data, _ := base64.StdEncoding.DecodeString(image.Source.Data) // data before an invalid character counts
	if len(data) == 0 {
		return protocol.Text("[Image could not be processed: Image file is empty (0 bytes)]")
	}
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return protocol.Image(kind, image.Source.Data)
	}
	return protocol.Text("[Image could not be processed: Unable to resize image — image processing is unavailable and dimensions could not be read from the file header. " +
		"Please convert the image to PNG, JPEG, GIF, or WebP.]")
}

// originIfHuman returns a prompt's origin if it is "human", otherwise nil. Hosts may set no other origin (spec: cli-contract 2).
func originIfHuman(rawPromptOrigin json.RawMessage) (rawOriginOrNil json.RawMessage) {
	var origin struct{ Kind string }
	if json.Unmarshal(rawPromptOrigin, &origin) != nil || origin.Kind != "human" {
		return nil
	}
	return rawPromptOrigin
}
