package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// Compare compares two recordings of one case path by path, and reports each path once.
func Compare(ours, theirs *Recording) []Difference {
	c := &comparison{pair: &normaliserPair{NewNormaliser(ours.Paths), NewNormaliser(theirs.Paths)}, indexByKey: map[differenceKey]int{}}
	c.pair.theirs.next = c.pair.ours.next
	for _, side := range []*Recording{ours, theirs} {
		for _, p := range side.Problems {
			c.addDifference("problem."+p.Kind, textOrEmpty(side == ours, p.Text), textOrEmpty(side == theirs, p.Text))
		}
	}
	rank, several := [2]map[string]int{{}, {}}, [2]bool{}
	for i := range max(len(ours.Runs), len(theirs.Runs)) {
		if i >= len(ours.Runs) || i >= len(theirs.Runs) {
			c.addDifference("runs", strconv.Itoa(len(ours.Runs)), strconv.Itoa(len(theirs.Runs)))
			break
		}
		a, b := parseEventStream(ours.Runs[i].Stdout), parseEventStream(theirs.Runs[i].Stdout)
		maps.Copy(rank[0], toolCallOrderByID(a))
		maps.Copy(rank[1], toolCallOrderByID(b))
		several[0] = sortEventsOfParallelAgents(a, rank[0]) || several[0]
		several[1] = sortEventsOfParallelAgents(b, rank[1]) || several[1]
		c.compareEvents("stdout", a, b, rank)
		c.eventNumber = 0
		c.compareText("stderr", strings.TrimSpace(ours.Runs[i].Stderr), strings.TrimSpace(theirs.Runs[i].Stderr))
		c.compareText("exit", ours.Runs[i].exitCodeAndSignalText(), theirs.Runs[i].exitCodeAndSignalText())
	}
	c.compareEvents("hooks", parseRecordedEvents(ours.Hooks), parseRecordedEvents(theirs.Hooks), rank)
	for _, name := range sortedKeysOf(ours.MCP, theirs.MCP) {
		c.compareEvents("mcp."+name, parseMCPEvents(ours.MCP[name]), parseMCPEvents(theirs.MCP[name]), rank)
	}
	c.compareTranscripts(ours, theirs, rank)
	c.compareEvents("requests", requestEvents(ours.Requests, several[0]), requestEvents(theirs.Requests, several[1]), rank)
	c.eventNumber = 0
	here, there := withNumberedFileNames(ours.Files, c.pair.ours), withNumberedFileNames(theirs.Files, c.pair.theirs)
	for _, name := range sortedKeysOf(here, there) {
		a, inA := here[name]
		b, inB := there[name]
		if inA != inB {
			c.addDifference("files."+name, textOrEmpty(inA, "there"), textOrEmpty(inB, "there"))
			continue
		}
		c.compareText("files."+name, a, b)
	}
	return c.differences
}

// withNumberedFileNames returns the files under new names, in which numbers replace the ids.
func withNumberedFileNames[V any](files map[string]V, n *Normaliser) map[string]V {
	named := make(map[string]V, len(files))
	for _, name := range sortedKeysOf(files) {
		named[n.Text(name)] = files[name]
	}
	return named
}

func textOrEmpty(present bool, text string) string {
	if present {
		return text
	}
	return ""
}

func (r Run) exitCodeAndSignalText() string {
	return strings.TrimSpace(strconv.Itoa(r.Code) + " " + r.Signal)
}

type mcpRecordLine struct {
	Session, From string
	Message       struct {
		ID     json.RawMessage
		Method string
	}
}

// parseMCPEvents returns the events of an MCP session, without the ids of messages. The kind of a response contains the
// method of the request. Events for which [isKindSentAfterStreamReopened] is true are omitted.
func parseMCPEvents(list []json.RawMessage) []comparedEvent {
	events, asked := parseRecordedEvents(list), map[string]string{}
	streams, dropped := map[string]int{}, map[int]bool{}
	for i, raw := range list {
		var l mcpRecordLine
		if json.Unmarshal(raw, &l) != nil {
			continue
		}
		maskIDsOfMCPMessage(events[i].value)
		key := l.Session + " " + string(l.Message.ID)
		switch {
		case l.Message.ID == nil:
		case l.Message.Method != "":
			asked[l.From+" "+key] = l.Message.Method
		default:
			other := map[string]string{"client": "server", "server": "client"}[l.From]
			events[i].kind = l.From + " answer to " + asked[other+" "+key]
			events[i].alignKey = events[i].kind
		}
		if events[i].kind == "client "+listenMethod {
			streams[l.Session]++
		}
		dropped[i] = streams[l.Session] > 1 && isKindSentAfterStreamReopened(events[i].kind)
	}
	kept := events[:0]
	for i, e := range events {
		if !dropped[i] {
			kept = append(kept, e)
		}
	}
	sortConcurrentListMessages(kept)
	return kept
}

const listenMethod = "subscriptions/listen"

// isKindSentAfterStreamReopened reports whether messages of this kind are sent after the client has reopened
// the notification stream. The client does so after a second, so only long recordings have these messages.
func isKindSentAfterStreamReopened(mcpEventKind string) bool {
	return slices.ContainsFunc([]string{listenMethod, "tools/list", "prompts/list", "resources/list"}, func(method string) bool {
		return mcpEventKind == "client "+method || mcpEventKind == "server answer to "+method
	}) || mcpEventKind == "server notifications/subscriptions/acknowledged"
}

// sortConcurrentListMessages sorts the requests for lists and their responses, because clients send such requests concurrently.
func sortConcurrentListMessages(mcpEvents []comparedEvent) {
	rank := func(e comparedEvent) int {
		for i, list := range []string{"tools/list", "prompts/list", "resources/list"} {
			switch e.kind {
			case "client " + list:
				return 2*i + 1
			case "server answer to " + list:
				return 2*i + 2
			}
		}
		return 0
	}
	sortAdjacentEvents(mcpEvents, func(e comparedEvent) bool { return rank(e) > 0 }, func(a, b comparedEvent) int { return rank(a) - rank(b) })
}

// maskIDsOfMCPMessage removes the ids by which messages refer to each other.
func maskIDsOfMCPMessage(recordedLine any) {
	object, _ := recordedLine.(map[string]any)
	message, _ := object["message"].(map[string]any)
	params, _ := message["params"].(map[string]any)
	meta, _ := params["_meta"].(map[string]any)
	for _, ref := range []struct {
		in  map[string]any
		key string
	}{{message, "id"}, {meta, "progressToken"}, {params, "progressToken"}, {params, "requestId"}} {
		if _, ok := ref.in[ref.key]; ok {
			ref.in[ref.key] = "<number>"
		}
	}
}

type comparison struct {
	pair        *normaliserPair
	differences []Difference
	indexByKey  map[differenceKey]int // position in differences, for each difference that was found
	eventNumber int
}

// differenceKey identifies a difference. Differences with the same path and the same missing side are counted as one.
type differenceKey struct {
	path                         string
	missingInOurs, missingInReal bool
}

const maxShownChars = 400

func (c *comparison) addDifference(path, ours, theirs string) {
	form := differenceKey{path, ours == "", theirs == ""}
	if i, ok := c.indexByKey[form]; ok {
		c.differences[i].Count++
		return
	}
	c.indexByKey[form] = len(c.differences)
	c.differences = append(c.differences, Difference{Path: path, Ours: diag.Shorten(ours, maxShownChars), Real: diag.Shorten(theirs, maxShownChars), Event: c.eventNumber, Count: 1})
}

func (c *comparison) compareEvents(name string, a, b []comparedEvent, callOrder [2]map[string]int) {
	sortResultsByCallAndRelink(a, callOrder[0])
	sortResultsByCallAndRelink(b, callOrder[1])
	pairs := alignEvents(a, b)
	for _, p := range pairs {
		switch {
		case p[0] < 0:
			c.pair.theirs.mapLineIDToParentPlaceholder(b[p[1]].value)
		case p[1] < 0:
			c.pair.ours.mapLineIDToParentPlaceholder(a[p[0]].value)
		default:
			c.pair.numberIDs(a[p[0]].value, b[p[1]].value, "")
		}
	}
	for n, p := range pairs {
		c.eventNumber = n + 1
		switch {
		case p[1] < 0:
			c.addDifference(name+"."+a[p[0]].kind, c.pair.ours.formatNormalisedValue(a[p[0]].value), "")
		case p[0] < 0:
			c.addDifference(name+"."+b[p[1]].kind, "", c.pair.theirs.formatNormalisedValue(b[p[1]].value))
		default:
			c.compareValue(name+"."+a[p[0]].kind, "", a[p[0]].value, b[p[1]].value)
		}
	}
}

// compareTranscripts compares the session files that have the same name after numbers have replaced ids. Ids that occur only in names are
// numbered by the age of their files. callOrder is the order of the tool calls of each side.
func (c *comparison) compareTranscripts(ours, theirs *Recording, callOrder [2]map[string]int) {
	left, right := c.pair.ours.filesWithUnnumberedIDsInNames(ours.Transcripts), c.pair.theirs.filesWithUnnumberedIDsInNames(theirs.Transcripts)
	for i := range min(len(left), len(right)) {
		c.pair.numberIDs(left[i], right[i], "")
	}
	a, b := withNumberedFileNames(ours.Transcripts, c.pair.ours), withNumberedFileNames(theirs.Transcripts, c.pair.theirs)
	for _, name := range sortedKeysOf(a, b) {
		x, inA := a[name]
		y, inB := b[name]
		c.eventNumber = 0
		if inA != inB {
			c.addDifference("transcript", textOrEmpty(inA, name), textOrEmpty(inB, name))
			continue
		}
		c.compareEvents("transcript", keepLastStateLinesAtEnd(parseRecordedEvents(x)), keepLastStateLinesAtEnd(parseRecordedEvents(y)), callOrder)
	}
}

// filesWithUnnumberedIDsInNames returns the names of files with an id that has no number yet, oldest first.
func (n *Normaliser) filesWithUnnumberedIDsInNames(linesByFileName map[string][]json.RawMessage) []string {
	var names []string
	for name := range linesByFileName {
		transcript, isMeta := strings.CutSuffix(name, ".meta.json") // it has no times; its transcript numbers the same ids
		if _, exists := linesByFileName[transcript+".jsonl"]; isMeta && exists {
			continue
		}
		if slices.ContainsFunc(n.findIDsInText(name), func(id string) bool { return n.ids[id] == "" }) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(firstTimestampInLines(linesByFileName[a])+a, firstTimestampInLines(linesByFileName[b])+b)
	})
	return names
}

func firstTimestampInLines(transcriptLines []json.RawMessage) string {
	for _, raw := range transcriptLines {
		var line struct{ Timestamp string }
		if json.Unmarshal(raw, &line) == nil && line.Timestamp != "" {
			return line.Timestamp
		}
	}
	return ""
}

func (c *comparison) compareValue(path, key string, a, b any) {
	if word, ok := PlaceholderForValuesOfJSONKey(key); ok && isNonNullScalar(a) && isNonNullScalar(b) {
		if word == "" && c.pair.ours.NumberedIDPlaceholder(fmt.Sprint(a)) != c.pair.theirs.NumberedIDPlaceholder(fmt.Sprint(b)) {
			c.addDifference(path, c.pair.ours.NumberedIDPlaceholder(fmt.Sprint(a)), c.pair.theirs.NumberedIDPlaceholder(fmt.Sprint(b)))
		}
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			c.compareObject(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			c.compareList(path, key, x, y)
			return
		}
	case string:
		if y, ok := b.(string); ok {
			c.compareText(path, x, y)
			return
		}
	}
	if ours, theirs := c.pair.ours.formatNormalisedValue(a), c.pair.theirs.formatNormalisedValue(b); ours != theirs {
		c.addDifference(path, ours, theirs)
	}
}

func (c *comparison) compareObject(path string, a, b map[string]any) {
	a, b = c.pair.ours.replaceIDsInKeys(a), c.pair.theirs.replaceIDsInKeys(b)
	for _, key := range sortedKeysOf(a, b) {
		x, inA := a[key]
		y, inB := b[key]
		at := path + "." + c.pair.ours.Text(key)
		switch {
		case !inB:
			c.addDifference(at, c.pair.ours.formatNormalisedValue(x), "")
		case !inA:
			c.addDifference(at, "", c.pair.theirs.formatNormalisedValue(y))
		default:
			c.compareValue(at, key, x, y)
		}
	}
}

// elementsOnlyOnThisSidePrefix precedes the words of a list that the other side does not have.
const elementsOnlyOnThisSidePrefix = "only here: "

// compareList compares lists element by element. For lists of scalars, it shows the elements that only one side has.
func (c *comparison) compareList(path, key string, a, b []any) {
	if slices.ContainsFunc(append(slices.Clone(a), b...), func(v any) bool { return !isNonNullScalar(v) }) {
		if len(a) != len(b) {
			c.addDifference(path+"[]", c.pair.ours.formatNormalisedValue(a), c.pair.theirs.formatNormalisedValue(b))
			return
		}
		for i := range a {
			c.compareValue(path+"[]", key, a[i], b[i])
		}
		return
	}
	ours, theirs := c.pair.ours.formatNormalisedList(key, a), c.pair.theirs.formatNormalisedList(key, b)
	if ours == theirs {
		return
	}
	if onlyA, onlyB := joinElementsOnlyInFirst(a, b), joinElementsOnlyInFirst(b, a); onlyA != "" || onlyB != "" {
		ours, theirs = elementsOnlyOnThisSidePrefix+onlyA, elementsOnlyOnThisSidePrefix+onlyB
	}
	c.addDifference(path, ours, theirs)
}

func joinElementsOnlyInFirst[T comparable](first, second []T) string {
	var words []string
	for _, v := range first {
		if !slices.Contains(second, v) {
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.Join(words, " ")
}

func (c *comparison) compareText(path, a, b string) {
	if ours, theirs := c.pair.ours.Text(a), c.pair.theirs.Text(b); ours != theirs {
		c.addDifference(path, ours, theirs)
	}
}
