package redact

//go:generate sh -c "go mod download github.com/zricethezav/gitleaks/v8@v8.30.1 && go run ./rules $(go env GOMODCACHE)/github.com/zricethezav/gitleaks/v8@v8.30.1/config/gitleaks.toml"

import (
	_ "embed" // for the rules
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

var (
	// additionalRulesText contains rules for forms of secrets that gitleaks lacks, or matches too strictly for records. The first line of
	// a rule has its id and members of [rule]: "name=number", or only the name of one that is true. The second line has its keywords. The
	// other lines, joined, are its expression.
	//
	//go:embed additional_rules.txt
	additionalRulesText string

	// The rule set of gitleaks, Copyright (c) 2019 Zachary Rice, used under the MIT License: permission to use, copy,
	// modify and distribute is granted provided that this notice is kept; the software is provided as is, without warranty.
	//
	//go:embed gitleaks_rules.txt
	gitleaksRulesText string

	// gitleaksExclusionsText has two lines: an expression and words that a guess must not contain.
	//
	//go:embed gitleaks_exclusions.txt
	gitleaksExclusionsText string
)

func readRules() []rule {
	// Both placeholders also match in scripts and JSON texts, where line ends can be escaped.
	patterns := strings.NewReplacer("{command start}", `(?:^|[\n;&|("']\s{0,9}|\\n\s{0,9}|(?:[;\n]\s*(?:then|do)|\bsudo|\bexec|\benv(?:\s+\w+=\S*)*|\btime|\bnohup|\bnpx|\btimeout\s+\S+)\s+)`, "{netrc separator}", `(?:\s|\\[nt]){1,9}`)
	var rules []rule
	for block := range strings.SplitSeq(patterns.Replace(additionalRulesText)+"\n"+gitleaksRulesText, "\n\n") {
		lines := strings.Split(block, "\n")
		properties := strings.Fields(lines[0])
		r := rule{
			id: properties[0], keywords: lines[1], expr: strings.Join(lines[2:], ""),
			isGuess: slices.Contains(properties, "isGuess"), usesContext: slices.Contains(properties, "usesContext"), isCommandOption: slices.Contains(properties, "isCommandOption"),
		}
		for _, property := range properties[1:] {
			name, number, _ := strings.Cut(property, "=")
			switch name {
			case "entropy":
				r.entropy, _ = strconv.ParseFloat(number, 64)
			case "group":
				r.group, _ = strconv.Atoi(number)
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// secretShapeFinder finds secrets by their form. Expressions are compiled when their keywords first occur.
type secretShapeFinder struct {
	rules  []rule
	words  *wordFinder
	byWord []keywordRule

	mu         sync.Mutex
	exprs      []*regexp.Regexp // expressions by rule; nil means not compiled yet
	exclusions *falsePositivePatterns
}

func newSecretShapeFinder() *secretShapeFinder {
	s := &secretShapeFinder{rules: readRules(), words: newWordFinder(true)}
	for i, r := range s.rules {
		for word := range strings.SplitSeq(r.keywords, "|") {
			for _, part := range padKeywordToThreeBytes(word) {
				s.words.addWord(part, len(s.byWord))
				s.byWord = append(s.byWord, keywordRule{i, r.choosePrecheckForKeyword(word)})
			}
		}
	}
	s.exprs = make([]*regexp.Regexp, len(s.rules))
	return s
}

// padKeywordToThreeBytes returns the words to search for. A keyword shorter than three bytes is combined with every
// byte that may adjoin it.
func padKeywordToThreeBytes(keyword string) (searchWords []string) {
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
	if len(keyword) >= 3 {
		return []string{keyword}
	}
	before := map[string]string{"q~": digits, ":a": digits}
	after := map[string]string{"ey": letters + digits, "s.": letters + digits, "sk": digits + "abcdef"}
	var words []string
	for _, c := range before[keyword] {
		words = append(words, string(c)+keyword)
	}
	for _, c := range after[keyword] {
		words = append(words, keyword+string(c))
	}
	return words
}

// candidateSpans returns, by rule number, the parts of a text that the rule might match, in order, without overlaps.
func (s *secretShapeFinder) candidateSpans(text string) map[int][][2]int {
	var spans map[int][][2]int
	s.words.forEachWordMatch(text, func(word, start, end int) {
		k := s.byWord[word]
		if !k.precheck.canRuleMatchAround(text, start, end) {
			return
		}
		if spans == nil {
			spans = map[int][][2]int{}
		}
		before, behind := k.precheck.bytesSearchedAroundKeyword()
		n, from, to := k.rule, max(start-before, 0), min(end+behind, len(text))
		if list := spans[n]; len(list) > 0 && from <= list[len(list)-1][1] {
			list[len(list)-1][1] = max(to, list[len(list)-1][1])
			return
		}
		spans[n] = append(spans[n], [2]int{from, to})
	})
	return spans
}

func (s *secretShapeFinder) find(text string) []Finding {
	return append(s.findWithRules(text, func(rule) bool { return true }), findDiscordTokens(text)...)
}

func (s *secretShapeFinder) findWithRules(text string, chosen func(rule) bool) []Finding {
	spans := s.candidateSpans(text)
	var found []Finding
	for _, n := range slices.Sorted(maps.Keys(spans)) {
		if !chosen(s.rules[n]) {
			continue
		}
		for _, span := range spans[n] {
			found = append(found, s.findRuleMatches(text, n, span)...)
		}
	}
	return found
}

func (s *secretShapeFinder) findRuleMatches(text string, ruleIndex int, span [2]int) []Finding {
	r, part := s.rules[ruleIndex], text[span[0]:span[1]]
	var found []Finding
	for _, m := range s.compiledPattern(ruleIndex).FindAllStringSubmatchIndex(part, -1) {
		if m[1] == len(part) && span[1] < len(text) { // the end of the part may have cut off the match
			const more = 64 << 10
			return s.findRuleMatches(text, ruleIndex, [2]int{span[0], min(span[1]+more, len(text))})
		}
		start, end := r.secretSpan(m)
		secret := part[start:end]
		if isPlaceholder(secret) || entropy(secret) < r.entropy {
			continue
		}
		if r.isGuess && s.isGuessFalsePositive(r, part[startOfNameContaining(part, m[0]):m[1]], secret) || r.id == "bearer" && isProseOrParameterAfterBearer(secret) {
			continue
		}
		found = append(found, Finding{Kind: upperSnakeCase(r.id), Start: span[0] + start, End: span[0] + end, Certain: !r.isGuess && (!r.usesContext || !looksLikeWordOrExample(secret))})
	}
	return found
}

// isProseOrParameterAfterBearer reports whether the word after "bearer" is a usual word or the parameter of an HTTP
// challenge, and therefore not a token.
func isProseOrParameterAfterBearer(wordAfterBearer string) bool {
	return wordAfterBearer == "resource_metadata=" || slices.ContainsFunc([]string{"authenti", "authori", "credential", "assessment", "scheme", "token", "security", "challenge", "instrument"}, func(about string) bool {
		return strings.HasPrefix(strings.ToLower(wordAfterBearer), about) && looksLikeWordOrExample(wordAfterBearer)
	})
}

// looksLikeWordOrExample reports whether a value looks like a word (letters of one case) or an example such as YOUR_TOKEN.
func looksLikeWordOrExample(value string) bool {
	const longestWord = 24
	lower, upper := false, false
	for i := range len(value) {
		c := value[i]
		lower, upper = lower || c >= 'a' && c <= 'z', upper || i > 0 && c >= 'A' && c <= 'Z'
		if c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' {
			return false
		}
	}
	return len(value) <= longestWord && (!lower || !upper)
}

func (r rule) secretSpan(match []int) (start, end int) {
	if r.group > 0 {
		return match[2*r.group], match[2*r.group+1]
	}
	for i := 2; i < len(match); i += 2 {
		if match[i] < match[i+1] {
			return match[i], match[i+1]
		}
	}
	return match[0], match[1]
}

func (s *secretShapeFinder) compiledPattern(ruleIndex int) *regexp.Regexp {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exprs[ruleIndex] == nil {
		expr := s.rules[ruleIndex].expr
		if rest, ok := strings.CutPrefix(expr, gitleaksPatternOfNameBeforeKeyword); ok {
			expr = "(?i)" + rest
		}
		s.exprs[ruleIndex] = regexp.MustCompile(expr)
	}
	return s.exprs[ruleIndex]
}

// gitleaksPatternOfNameBeforeKeyword is the beginning of the gitleaks rules for a name with a value. It matches the part of the
// name before the keyword. The expressions are used without this beginning, because matching it would take ten times as long as
// the rest of a rule. [startOfNameContaining] finds this part of the name instead.
const gitleaksPatternOfNameBeforeKeyword = `(?i)[\w.-]{0,50}?`

func startOfNameContaining(text string, keywordStart int) int {
	const longest = 50
	from := keywordStart
	for from > 0 && keywordStart-from < longest && (isLetterDigitOrUnderscore(text[from-1]) || text[from-1] == '.' || text[from-1] == '-') {
		from--
	}
	return from
}

type falsePositivePatterns struct {
	match *regexp.Regexp
	words []string
}

// isGuessFalsePositive reports whether a match of a guessing rule is not a secret, but for example a variable, a call or a word.
func (s *secretShapeFinder) isGuessFalsePositive(guessingRule rule, matchedText, secret string) bool {
	if strings.ContainsAny(secret, "(){}[]<>$") || !strings.ContainsAny(secret, "0123456789") && guessingRule.id != "password" {
		return true
	}
	if guessingRule.id != "generic-api-key" {
		return false
	}
	s.mu.Lock()
	if s.exclusions == nil {
		expr, words, _ := strings.Cut(gitleaksExclusionsText, "\n")
		s.exclusions = &falsePositivePatterns{match: regexp.MustCompile(expr), words: strings.Fields(words)}
	}
	g := s.exclusions
	s.mu.Unlock()
	folded := strings.ToLower(secret)
	return g.match.MatchString(matchedText) || slices.ContainsFunc(g.words, func(w string) bool { return strings.Contains(folded, w) })
}

// entropy returns Shannon's entropy in bits per byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	sum := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

// Lengths of the parts of a Discord token: the id of the bot in base64, a time and a signature.
const (
	minDiscordTokenIDBytes, maxDiscordTokenIDBytes               = 23, 30
	minDiscordTokenTimeBytes, maxDiscordTokenTimeBytes           = 5, 7
	minDiscordTokenSignatureBytes, maxDiscordTokenSignatureBytes = 27, 45
)

// findDiscordTokens finds the tokens of Discord bots, which have no keyword: three parts separated by dots.
func findDiscordTokens(text string) []Finding {
	var found []Finding
	for from := 0; ; {
		dot := strings.IndexByte(text[from:], '.')
		if dot < 0 {
			return found
		}
		dot += from
		from = dot + 1
		start := dot
		for start > 0 && isDiscordTokenByte(text[start-1]) {
			start--
		}
		second := endOfDiscordTokenPart(text, dot+1)
		if !inRange(dot-start, minDiscordTokenIDBytes, maxDiscordTokenIDBytes) || !inRange(second-dot-1, minDiscordTokenTimeBytes, maxDiscordTokenTimeBytes) ||
			strings.IndexByte("MNO", text[start]) < 0 || second == len(text) || text[second] != '.' {
			continue
		}
		end := endOfDiscordTokenPart(text, second+1)
		if signature := text[second+1 : end]; inRange(len(signature), minDiscordTokenSignatureBytes, maxDiscordTokenSignatureBytes) && strings.ContainsAny(text[start:end], "0123456789") {
			found = append(found, Finding{Kind: "DISCORD_TOKEN", Start: start, End: end, Certain: true})
			from = end
		}
	}
}

func endOfDiscordTokenPart(text string, partStart int) int {
	for partStart < len(text) && isDiscordTokenByte(text[partStart]) {
		partStart++
	}
	return partStart
}

func isDiscordTokenByte(b byte) bool { return isBase64(b) && b != '+' && b != '/' }

func inRange(n, minimum, maximum int) bool { return n >= minimum && n <= maximum }
