package parity

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

type comparedEvent struct {
	kind     string
	value    any    // decoded; a string if the line is not JSON
	alignKey string // key by which the events of two streams are aligned
}

type eventHead struct {
	Type, Subtype   string
	Hook            string `json:"hook_event_name"`
	HookEvent       string `json:"hook_event"`
	From, Operation string
	Event           struct{ Type string }
	Request         struct{ Subtype string }
	Response        struct{ Subtype string }
	Attachment      struct{ Type string }
	Message         json.RawMessage
}

type kindDeterminingFields struct {
	Model, Method string
	Content       json.RawMessage
}

type blockForEventAlignment struct {
	Type, Name string
}

// kindAndAlignKeyOfEvent returns the kind of an event, such as "system/init", "assistant[tool_use]", "result/success" or
// "stream_event/message_start". For the input of a hook, this is the name of the hook event. For an MCP message, it is
// the sender and the method. alignKey is the kind with more detail, by which the events of two streams are aligned.
func kindAndAlignKeyOfEvent(rawEvent json.RawMessage) (kind, alignKey string) {
	var h eventHead
	if json.Unmarshal(rawEvent, &h) != nil {
		return "text", "text"
	}
	m := plainjson.DecodeIgnoringErrors[kindDeterminingFields](h.Message) // optional
	switch {
	case h.Hook != "":
		return h.Hook, h.Hook
	case h.From != "":
		method := cmp.Or(m.Method, "answer")
		return h.From + " " + method, h.From + " " + method
	}
	kind = h.Type
	for _, sub := range []string{h.Subtype, h.Event.Type, h.Request.Subtype, h.Response.Subtype, h.Attachment.Type, h.Operation} {
		if sub != "" {
			kind += "/" + sub
		}
	}
	if h.Type != "assistant" && h.Type != "user" {
		return kind, kind + " " + h.HookEvent
	}
	block := firstBlock(m.Content)
	kind += "[" + block.Type + "]"
	if m.Model == "<synthetic>" {
		kind += "synthetic"
	}
	return kind, kind + " " + block.Name
}

func firstBlock(content json.RawMessage) blockForEventAlignment {
	var blocks []blockForEventAlignment
	if json.Unmarshal(content, &blocks) != nil || len(blocks) == 0 {
		return blockForEventAlignment{Type: "string"}
	}
	return blocks[0]
}

// parseEventStream returns the events of a stream: a JSON array, or lines that each hold one event, as JSON or as text.
func parseEventStream(stream string) []comparedEvent {
	var all []comparedEvent
	var list []json.RawMessage
	if text := strings.TrimSpace(stream); strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil {
		return parseRecordedEvents(list)
	}
	for line := range strings.Lines(stream) {
		all = append(all, parseRecordedEvent(json.RawMessage(strings.TrimSuffix(line, "\n"))))
	}
	return all
}

func parseRecordedEvents(list []json.RawMessage) []comparedEvent {
	var all []comparedEvent
	for _, raw := range list {
		all = append(all, parseRecordedEvent(raw))
	}
	return all
}

func parseRecordedEvent(rawEvent json.RawMessage) comparedEvent {
	v, err := plainjson.DecodeFirstValue(rawEvent)
	if _, object := v.(map[string]any); err != nil || !object {
		return comparedEvent{kind: "text", alignKey: "text", value: string(rawEvent)}
	}
	kind, key := kindAndAlignKeyOfEvent(rawEvent)
	return comparedEvent{kind: kind, alignKey: key, value: v}
}

func toolCallOrderByID(events []comparedEvent) map[string]int {
	rank := map[string]int{}
	for _, e := range events {
		if e.kind != "assistant[tool_use]" {
			continue
		}
		if id := firstContentBlockOfEvent(e)["id"]; id != nil {
			rank[stringOrEmpty(id)] = len(rank)
		}
	}
	return rank
}

func firstContentBlockOfEvent(e comparedEvent) map[string]any {
	object, _ := e.value.(map[string]any)
	message, _ := object["message"].(map[string]any)
	content, _ := message["content"].([]any)
	if len(content) == 0 {
		return nil
	}
	first, _ := content[0].(map[string]any)
	return first
}

func stringOrEmpty(value any) string { s, _ := value.(string); return s }

// sortResultsByCallAndRelink sorts adjacent results, and adjacent inputs of the same hook, by the order of the parallel calls.
func sortResultsByCallAndRelink(events []comparedEvent, callOrder map[string]int) {
	for i := 0; i < len(events); {
		group, _ := callOfResultOrHookInput(events[i])
		j := i + 1
		for group != "" && j < len(events) {
			if next, _ := callOfResultOrHookInput(events[j]); next != group {
				break
			}
			j++
		}
		slices.SortStableFunc(events[i:j], func(a, b comparedEvent) int {
			_, x := callOfResultOrHookInput(a)
			_, y := callOfResultOrHookInput(b)
			return callOrder[x] - callOrder[y]
		})
		relinkParentsAfterSortingGroup(events[i:j], events[j:])
		i = j
	}
}

// relinkParentsAfterSortingGroup repairs the chain of transcript lines after the lines of a group were sorted. Later
// lines whose parent is in the group get the last line of the group as their parent.
func relinkParentsAfterSortingGroup(sortedGroup, laterEvents []comparedEvent) {
	if len(sortedGroup) < 2 {
		return
	}
	ids := map[string]bool{}
	for _, e := range sortedGroup {
		ids[eventMember(e, "uuid")] = true
	}
	for _, e := range laterEvents {
		if object, ok := e.value.(map[string]any); ok && ids[eventMember(e, "parentUuid")] {
			object["parentUuid"] = eventMember(sortedGroup[len(sortedGroup)-1], "uuid")
		}
	}
}

func eventMember(e comparedEvent, key string) string {
	object, _ := e.value.(map[string]any)
	return stringOrEmpty(object[key])
}

// sortEventsOfParallelAgents sorts the events of parallel agents, if any, by the order of their calls. The recorded order
// depends on timing, because the real CLI starts the first agent before the rest of the message has arrived.
func sortEventsOfParallelAgents(events []comparedEvent, callOrder map[string]int) (hasParallelAgents bool) {
	task := map[string]string{} // id → call
	for _, e := range events {
		if id := eventMember(e, "task_id"); e.kind == "system/task_started" {
			task[id] = eventMember(e, "tool_use_id")
		}
	}
	callOf := func(e comparedEvent) string {
		switch e.kind {
		case "assistant[tool_use]", "user[tool_result]":
			if parent := eventMember(e, "parent_tool_use_id"); parent != "" {
				return parent
			}
			block := firstContentBlockOfEvent(e)
			return stringOrEmpty(block["id"]) + stringOrEmpty(block["tool_use_id"])
		}
		if call := eventMember(e, "tool_use_id") + eventMember(e, "parent_tool_use_id"); call != "" {
			return call
		}
		return task[eventMember(e, "task_id")]
	}
	for i := 0; i < len(events); {
		j, begun := i, map[string]bool{}
		for ; j < len(events) && callOf(events[j]) != ""; j++ {
			if events[j].kind == "system/task_started" {
				begun[callOf(events[j])] = true
			}
		}
		if len(begun) > 1 {
			hasParallelAgents = true
			slices.SortStableFunc(events[i:j], func(a, b comparedEvent) int { return callOrder[callOf(a)] - callOrder[callOf(b)] })
		}
		i = max(j, i+1)
	}
	return hasParallelAgents
}

// requestEvents returns the requests as events. If agents ran in parallel, consecutive prompts are sorted by text.
func requestEvents(requests []json.RawMessage, hasParallelAgents bool) []comparedEvent {
	events := parseRecordedEvents(requests)
	if !hasParallelAgents {
		return events
	}
	sortAdjacentEvents(events, func(e comparedEvent) bool { return e.kind == "prompt" }, func(a, b comparedEvent) int { return strings.Compare(eventMember(a, "text"), eventMember(b, "text")) })
	return events
}

func sortAdjacentEvents(events []comparedEvent, belongs func(comparedEvent) bool, compare func(a, b comparedEvent) int) {
	for i := 0; i < len(events); i++ {
		from := i
		for i < len(events) && belongs(events[i]) {
			i++
		}
		slices.SortStableFunc(events[from:i], compare)
	}
}

func callOfResultOrHookInput(e comparedEvent) (group, id string) {
	object, _ := e.value.(map[string]any)
	switch {
	case e.kind == "user[tool_result]":
		return e.kind, stringOrEmpty(firstContentBlockOfEvent(e)["tool_use_id"])
	case object["hook_event_name"] != nil && object["tool_use_id"] != nil:
		return "hook", stringOrEmpty(object["tool_use_id"])
	case e.kind == "result" && object["tool_use_id"] != nil: // a tool result in a request to the model
		return e.kind, stringOrEmpty(object["tool_use_id"])
	}
	return "", ""
}

// alignEvents pairs the indexes of events with equal keys by their longest common subsequence; -1 means no partner.
func alignEvents(a, b []comparedEvent) [][2]int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x.alignKey == y.alignKey {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	var pairs [][2]int
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i].alignKey == b[j].alignKey:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && table[i+1][j] >= table[i][j+1]:
			pairs = append(pairs, [2]int{i, -1})
			i++
		default:
			pairs = append(pairs, [2]int{-1, j})
			j++
		}
	}
	return pairs
}

// KindOfRecordedEvent returns the kind of an event; "text" if it is not JSON.
func KindOfRecordedEvent(rawEvent json.RawMessage) string {
	kind, _ := kindAndAlignKeyOfEvent(rawEvent)
	return kind
}

// keepLastStateLinesAtEnd keeps only the last line of each kind of state, and moves it to the end, because the real CLI repeats such lines
// at random times.
func keepLastStateLinesAtEnd(transcriptEvents []comparedEvent) []comparedEvent {
	var rest []comparedEvent
	last := map[string]comparedEvent{}
	for _, e := range transcriptEvents {
		switch e.kind {
		case "last-prompt", "atis-latch", "tools-used", "cost-state", "mode", "custom-title", "agent-name", "agent-setting", "worktree-state":
			last[e.kind] = e
		default:
			rest = append(rest, e)
		}
	}
	for _, kind := range sortedKeysOf(last) {
		rest = append(rest, last[kind])
	}
	return rest
}

func sortedKeysOf[V any](of ...map[string]V) []string {
	var all []string
	for _, m := range of {
		all = slices.AppendSeq(all, maps.Keys(m))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
