package redact

import (
	"net/netip"
	"slices"
	"strings"
)

// PersonalData lists personal data to find: paths, names, ids. E-mail addresses, IP addresses and message ids are found
// by their form. The kinds of findings are HOME, CWD, USER, HOST, ID, EMAIL and IP. None of them is Certain.
type PersonalData struct {
	Homes []string // home directories
	CWDs  []string // working directories
	Users []string // account names; names that many accounts have, such as root, are not redacted
	Hosts []string
	IDs   []string // ids of sessions, requests and messages
}

type personalDataFinder struct {
	words              *wordFinder
	kindsByWordNumber  []string
	knownIDs           map[string]bool
	hasKnownIDOfLength [maxPersonalIDBytes + 1]bool
}

func newPersonalDataFinder(p *PersonalData) *personalDataFinder {
	f := &personalDataFinder{words: newWordFinder(false), knownIDs: map[string]bool{}}
	tooCommon := strings.Fields("root user admin ubuntu runner node test home localhost default claude claudeless app dev work workspace vscode")
	for _, list := range []struct {
		kind  string
		words []string
	}{{"CWD", p.CWDs}, {"HOME", p.Homes}, {"USER", p.Users}, {"HOST", p.Hosts}} {
		for _, w := range list.words {
			w = strings.TrimRight(w, "/")
			if named := list.kind == "USER" || list.kind == "HOST"; len(w) < minPersonalWordOrIDBytes || f.words.isWordAdded(w) || named && slices.Contains(tooCommon, w) {
				continue
			}
			f.words.addWord(w, len(f.kindsByWordNumber))
			f.kindsByWordNumber = append(f.kindsByWordNumber, list.kind)
		}
	}
	for _, prefix := range idPrefixes {
		f.words.addWord(prefix, len(f.kindsByWordNumber))
		f.kindsByWordNumber = append(f.kindsByWordNumber, prefix)
	}
	for _, id := range p.IDs {
		if n := len(id); n >= minPersonalWordOrIDBytes && n <= maxPersonalIDBytes && idEnd(id, 0) == n {
			f.knownIDs[id], f.hasKnownIDOfLength[n] = true, true
		}
	}
	return f
}

const (
	minPersonalWordOrIDBytes = 3
	maxPersonalIDBytes       = 80
)

var idPrefixes = [...]string{"msg_", "req_", "toolu_"}

func idEnd(s string, i int) int {
	for i < len(s) && (isLetterDigitOrUnderscore(s[i]) || s[i] == '-') {
		i++
	}
	return i
}

// findKnownSessionRequestOrMessageIDs finds known ids. An id is found only as a complete word, or as a part between hyphens.
func (p *personalDataFinder) findKnownSessionRequestOrMessageIDs(text string) []Finding {
	var found []Finding
	for i := 0; i < len(text); i++ {
		end := idEnd(text, i)
		for from := i; from < end; from++ {
			if from > i && text[from-1] != '-' {
				continue
			}
			for to := min(end, from+maxPersonalIDBytes); to-from >= minPersonalWordOrIDBytes; to-- {
				if p.hasKnownIDOfLength[to-from] && (to == end || text[to] == '-') && p.knownIDs[text[from:to]] {
					found = append(found, Finding{Kind: "ID", Start: from, End: to})
					break
				}
			}
		}
		i = max(i, end)
	}
	return found
}

func (p *personalDataFinder) find(s string) []Finding {
	var found []Finding
	p.words.forEachWordMatch(s, func(n, start, end int) {
		switch kind := p.kindsByWordNumber[n]; kind {
		case "CWD", "HOME", "USER", "HOST":
			if (start == 0 || !isLetterDigitOrUnderscore(s[start-1]) || s[start] == '/') && (end == len(s) || !isLetterDigitOrUnderscore(s[end])) {
				found = append(found, Finding{Kind: kind, Start: start, End: end})
			}
		default:
			const enough = 10
			for end < len(s) && isLetterDigitOrUnderscore(s[end]) {
				end++
			}
			if end-start >= len(kind)+enough && (start == 0 || !isLetterDigitOrUnderscore(s[start-1])) {
				found = append(found, Finding{Kind: "ID", Start: start, End: end})
			}
		}
	})
	return slices.Concat(found, p.findKnownSessionRequestOrMessageIDs(s), findEmails(s), findUnicastNonLoopbackIPv4(s))
}

func isLetterDigitOrUnderscore(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

func isEmailByte(b byte) bool {
	return isLetterDigitOrUnderscore(b) || b == '.' || b == '-' || b == '+' || b == '%'
}

// findEmails finds addresses such as me@host.tld, except git@ and noreply@.
func findEmails(s string) []Finding {
	var found []Finding
	for i := strings.IndexByte(s, '@'); i >= 0; {
		start, end := i, i+1
		for start > 0 && isEmailByte(s[start-1]) {
			start--
		}
		for end < len(s) && isEmailByte(s[end]) {
			end++
		}
		for end > i && (s[end-1] == '.' || s[end-1] == '-') {
			end--
		}
		name, host := s[start:i], s[min(i+1, end):end]
		dot := strings.LastIndexByte(host, '.')
		if name != "" && name != "git" && name != "noreply" && dot > 0 && len(host)-dot > 2 && strings.Trim(host[dot+1:], "0123456789") == host[dot+1:] {
			found = append(found, Finding{Kind: "EMAIL", Start: start, End: end})
		}
		next := strings.IndexByte(s[i+1:], '@')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return found
}

// findUnicastNonLoopbackIPv4 finds IPv4 addresses, except loopback and similar ones.
func findUnicastNonLoopbackIPv4(s string) []Finding {
	var found []Finding
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' || i > 0 && (isLetterDigitOrUnderscore(s[i-1]) || s[i-1] == '.' || s[i-1] == '-') {
			continue
		}
		end := i
		for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
			end++
		}
		if end == len(s) || !isLetterDigitOrUnderscore(s[end]) && s[end] != '-' {
			a, err := netip.ParseAddr(strings.TrimRight(s[i:end], "."))
			if err == nil && !a.IsLoopback() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
				found = append(found, Finding{Kind: "IP", Start: i, End: i + len(strings.TrimRight(s[i:end], "."))})
			}
		}
	}
	return found
}

// wordFinder finds many words in a text in one pass. Words must have at least three bytes.
type wordFinder struct {
	ignoreCase bool                    // ignore the case of ASCII letters; the words are in lower case
	prefixBits [1 << 10]uint64         // a set bit for each hash of a word's first three bytes; allows a quick check
	byPrefix   map[uint32][]wordToFind // words by their first three bytes
}

type wordToFind struct {
	text                  string
	numberReportedOnMatch int
}

func newWordFinder(ignoreCase bool) *wordFinder {
	return &wordFinder{ignoreCase: ignoreCase, byPrefix: map[uint32][]wordToFind{}}
}

func (d *wordFinder) addWord(text string, number int) {
	key := prefixKey(text)
	h := hashPrefixTo16Bits(key)
	d.prefixBits[h>>6] |= 1 << (h & 63)
	d.byPrefix[key] = append(d.byPrefix[key], wordToFind{text, number})
}

func (d *wordFinder) isWordAdded(word string) bool {
	return slices.ContainsFunc(d.byPrefix[prefixKey(word)], func(w wordToFind) bool { return w.text == word })
}

func prefixKey(text string) uint32 { return uint32(text[0])<<16 | uint32(text[1])<<8 | uint32(text[2]) }

func hashPrefixTo16Bits(threeBytePrefix uint32) uint32 { return threeBytePrefix * 0x9E3779B1 >> 16 }

// forEachWordMatch calls reportNumberAndSpan for each word found in s, with the number and the position of the word.
func (d *wordFinder) forEachWordMatch(s string, reportNumberAndSpan func(n, start, end int)) {
	key := uint32(0)
	for i := range len(s) {
		b := s[i]
		if d.ignoreCase {
			b = lowerCase(b)
		}
		key = (key<<8 | uint32(b)) & 0xFFFFFF
		if h := hashPrefixTo16Bits(key); d.prefixBits[h>>6]&(1<<(h&63)) == 0 || i < 2 {
			continue
		}
		for _, w := range d.byPrefix[key] {
			if d.beginsWithWordIfPrefixMatched(s[i-2:], w.text) {
				reportNumberAndSpan(w.numberReportedOnMatch, i-2, i-2+len(w.text))
			}
		}
	}
}

func (d *wordFinder) beginsWithWordIfPrefixMatched(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := 3; i < len(word); i++ {
		b := text[i]
		if d.ignoreCase {
			b = lowerCase(b)
		}
		if b != word[i] {
			return false
		}
	}
	return true
}

func lowerCase(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b | 0x20
	}
	return b
}
