package shellcmd

import (
	"slices"
	"strings"
	"sync"
)

// readOnlyOptionGrammar lists the options with which a command only reads. All other options are refused, because their effect
// is unknown. Abbreviations of long options are also refused, because they may mean another option in a later version.
type readOnlyOptionGrammar struct {
	flags            string // letters without a value; they may be combined
	flagsWithValue   string // letters whose value is the rest of the word or the next word
	flagsWithNumber  string // letters whose value is a number, in the same word or in the next
	numeric          string // letters whose value is a number in the next word
	longNames        string // long names without a value, separated by spaces
	optional         string // long names that may have a value after =
	longWithValue    string // long names that have a value, after = or as the next word
	longWithNumber   string // names of longWithValue whose value is a number
	allowsDigits     bool   // a number such as -5 is an option
	operandsNeedPlus bool   // every operand must begin with a plus sign, as in date +%F
	maxOperands      int    // maximum number of operands; 0 means any number, -1 means none
	stopsAtOperand   bool   // options end at the first operand
	refusesDashes    bool   // no operand after -- may begin with a hyphen
}

func (g readOnlyOptionGrammar) allows(args []string) bool {
	rest, ok := g.parseOptionsAndReturnOperands(args)
	switch {
	case !ok, g.maxOperands < 0 && len(rest) > 0, g.maxOperands > 0 && len(rest) > g.maxOperands:
		return false
	case g.operandsNeedPlus:
		return !slices.ContainsFunc(rest, func(a string) bool { return !strings.HasPrefix(a, "+") })
	}
	return true
}

// parseOptionsAndReturnOperands returns the arguments that are not options; areOptionsAllowed is false if an option or its
// value is not allowed.
func (g readOnlyOptionGrammar) parseOptionsAndReturnOperands(args []string) (operands []string, areOptionsAllowed bool) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			dashes := slices.ContainsFunc(args[i+1:], func(a string) bool { return strings.HasPrefix(a, "-") })
			return append(operands, args[i+1:]...), !dashes || !g.refusesDashes
		case len(a) > 1 && a[0] == '-':
			known, value := g.parseOption(a)
			if value != "" {
				i++
			}
			needsNumber := len(value) == 1 && strings.Contains(g.flagsWithNumber+g.numeric, value) || len(value) > 1 && strings.Contains(g.longWithNumber, value)
			if !known || i == len(args) || needsNumber && !isInteger(args[i]) || value != "" && strings.HasPrefix(args[i], "-") && len(args[i]) > 1 {
				return nil, false
			}
		case g.stopsAtOperand:
			return append(operands, args[i:]...), true
		default:
			operands = append(operands, a)
		}
	}
	return operands, true
}

// parseOption parses a word of options such as -la. known is true if all options in the word are known. If the last of
// them takes the next word as its value, optionAwaitingValue is the name of this option; otherwise it is empty.
func (g readOnlyOptionGrammar) parseOption(word string) (known bool, optionAwaitingValue string) {
	long, isLong := strings.CutPrefix(word, "--")
	if !isLong {
		return g.parseCluster(word[1:])
	}
	name, text, assigned := strings.Cut(long, "=")
	name = " " + name + " "
	switch {
	case !strings.Contains(g.longWithValue, name):
		return strings.Contains(g.optional, name) || !assigned && strings.Contains(g.longNames, name), ""
	case assigned:
		return isInteger(text) || !strings.Contains(g.longWithNumber, name), ""
	}
	return true, name
}

// parseCluster parses the letters of one word of options. Its results are those of parseOption. In a word with several
// letters, none may have a value, but a value may follow an equals sign (observed with 2.1.330).
func (g readOnlyOptionGrammar) parseCluster(letters string) (known bool, optionAwaitingValue string) {
	if g.allowsDigits && isInteger(letters) {
		return true, ""
	}
	for i := range len(letters) {
		letter, rest := letters[i:i+1], letters[i+1:]
		value, assigned := strings.CutPrefix(rest, "=")
		switch {
		case i == 0 && strings.Contains(g.flagsWithNumber, letter) && isInteger(rest),
			i == 0 && assigned && (strings.Contains(g.flagsWithValue, letter) || strings.Contains(g.flagsWithNumber+g.numeric, letter) && isInteger(value)):
			return true, ""
		case strings.Contains(g.flagsWithValue+g.flagsWithNumber+g.numeric, letter):
			return rest == "" && i == 0, letter
		case !strings.Contains(g.flags, letter):
			return false, ""
		}
	}
	return true, ""
}

// grammarOf returns the options with which a command only reads (observed with 2.1.329, which allows a few more).
func grammarOf(name string) (g readOnlyOptionGrammar, ok bool) {
	switch name {
	case "egrep", "fgrep":
		name = "grep"
	case "fdfind":
		name = "fd"
	}
	g, ok = commandGrammars()[name]
	return g, ok
}

var commandGrammars = sync.OnceValue(func() map[string]readOnlyOptionGrammar {
	return map[string]readOnlyOptionGrammar{
		"sort":    {flags: "bdfgiMhnRrVcCmsuz", flagsWithValue: "ktS", longNames: " ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse version-sort sort check merge stable unique zero-terminated help version ", longWithValue: " buffer-size batch-size field-separator key parallel ", longWithNumber: " batch-size parallel "},
		"date":    {flags: "IRu", flagsWithValue: "dr", operandsNeedPlus: true, longNames: " rfc-email utc universal debug help version ", longWithValue: " date reference rfc-3339 "},
		"tree":    {flags: "adfilpsuhCDFgnQrtvAJNSUXcqx", flagsWithValue: "HIPT", numeric: "L", longWithNumber: " filelimit ", longNames: " dirsfirst fromfile noreport gitignore prune help version info filesfirst device inodes ignore-case matchdirs fromtabfile du si houtro nolinks metafirst ", longWithValue: " filelimit timefmt infofile charset sort gitfile hintro "},
		"file":    {flags: "bchiklnprsvL0", flagsWithValue: "F", longNames: " brief mime mime-type mime-encoding dereference no-dereference list special-files help version keep-going no-buffer preserve-date print0 raw apple ", longWithValue: " exclude exclude-quiet separator "},
		"base64":  {flags: "diD", numeric: "wb", longNames: " decode ignore-garbage help version ", longWithValue: " wrap "},
		"uniq":    {flags: "cdDiuz", numeric: "fsw", maxOperands: -1, longNames: " count repeated unique ignore-case zero-terminated help ", optional: " skip-fields skip-chars check-chars group all-repeated "},
		"ps":      {flags: "aAcdeflFjHLmnNTVwy", flagsWithValue: "CGgpqstUu", longNames: " forest no-headers headers deselect info help version ", longWithValue: " pid sort user width sid tty quick-pid "},
		"lsof":    {flags: "nPtlaRUisrFTxXhvoELNVCSKbQHOg", flagsWithValue: "pucdAke"},
		"netstat": {flags: "lnarsi"}, "docker logs": {refusesDashes: true, flags: "ft", flagsWithValue: "n", longNames: " follow timestamps details ", longWithValue: " tail since until "},
		"docker inspect": {refusesDashes: true, flags: "s", flagsWithValue: "f", longNames: " size ", longWithValue: " format type "},
		"ss":             {flags: "tlnpasuxemori46", longNames: " tcp udp listening numeric processes all summary extended memory options info ipv4 ipv6 no-header unix raw packet dccp sctp vsock events oneline help version ", longWithValue: " family query "},
		"man":            {flags: "kfwa", longNames: " apropos whatis all "},
		"help":           {flags: "d"},
		"tput":           {flags: "Vx", flagsWithValue: "T"},
		"hostname":       {flags: "fsiIdA", maxOperands: -1},
		"ifconfig":       {maxOperands: 1},
		"grep":           {flags: "EFGPwxzsvVcolLqhHnabuTrRiIUZ", flagsWithValue: "efdD", flagsWithNumber: "ABCm", longNames: " extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp line-regexp count files-without-match files-with-matches only-matching quiet silent no-messages byte-offset with-filename no-filename line-number initial-tab null null-data text recursive dereference-recursive line-buffered help version no-group-separator binary unix-byte-offsets ", optional: " color colour ", longWithValue: " regexp file max-count after-context before-context context include exclude exclude-from exclude-dir label group-separator binary-files devices directories "},
		"rg":             {flags: "iSwvclnouFLHaq", flagsWithValue: "tTgef", flagsWithNumber: "ABCm", longNames: " ignore-case smart-case word-regexp invert-match count files-with-matches files-without-match line-number only-matching fixed-strings hidden no-ignore json stats follow no-heading heading column text quiet type-list debug help version ", longWithValue: " max-count type type-not glob regexp max-depth color after-context before-context context "},
		"fd":             {flags: "HIagcpsL1i0FVq", flagsWithValue: "etESdoj", longNames: " hidden no-ignore absolute-path glob case-sensitive ignore-case full-path follow no-ignore-vcs regex fixed-strings print0 prune quiet show-errors strip-cwd-prefix one-file-system help version ", longWithValue: " extension type max-depth min-depth exclude color and exact-depth size changed-within changed-before owner format batch-size ignore-file threads max-results base-directory path-separator search-path "},
	}
})

func gitGrammar(subcommand string) (g readOnlyOptionGrammar, ok bool) {
	g, ok = gitGrammars()[subcommand]
	return g, ok
}

var gitGrammars = sync.OnceValue(func() map[string]readOnlyOptionGrammar {
	const (
		commits = " oneline graph all decorate no-decorate abbrev-commit no-abbrev-commit reverse merges no-merges first-parent follow date format pretty topo-order date-order author-date-order left-right no-walk cherry-pick branches tags remotes relative-date source full-history simplify-merges ancestry-path "
		limits  = " max-count skip since until after before author committer grep "
	)
	const counts = " oneline decorate no-decorate abbrev-commit first-parent relative-date stat numstat shortstat name-only name-status color no-color patch no-patch no-ext-diff "
	return map[string]readOnlyOptionGrammar{
		"status":       {flags: "sbv", flagsWithValue: "uM", longNames: " short porcelain branch ignored verbose column no-column no-renames ahead-behind long ", longWithValue: " untracked-files ignore-submodules find-renames "},
		"log":          {flags: "ps", flagsWithValue: "nGS", allowsDigits: true, longNames: counts + " graph all reverse merges no-merges follow topo-order date-order author-date-order left-right no-walk cherry-pick cherry-mark branches tags remotes source full-history simplify-merges ancestry-path walk-reflogs boundary pickaxe-all pickaxe-regex ", longWithValue: " date max-count skip since until after before author committer grep diff-filter format pretty "},
		"show":         {flags: "psm", flagsWithValue: "GS", allowsDigits: true, longNames: counts + " graph word-diff color-words raw quiet ", longWithValue: " date word-diff-regex diff-filter format pretty "},
		"shortlog":     {flags: "snec", allowsDigits: true, longNames: " all no-merges branches tags remotes committer summary numbered email ", longWithValue: " since until after before author group "},
		"diff":         {flags: "pMCRsuBD", flagsWithValue: "lGOS", longNames: " stat numstat shortstat summary name-only name-status color no-color word-diff color-words minimal patience histogram pickaxe-all pickaxe-regex no-ext-diff ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines full-index binary function-context no-renames find-renames find-copies find-copies-harder break-rewrites irreversible-delete exit-code quiet check dirstat cached staged no-index ", longWithValue: " word-diff-regex diff-algorithm diff-filter abbrev inter-hunk-context ws-error-highlight relative "},
		"blame":        {flags: "wCMlseptfn", flagsWithValue: "L", optional: " porcelain line-porcelain show-name show-number show-email date color-lines color-by-age "},
		"ls-files":     {flags: "ocmdsiutzkvf", flagsWithValue: "xX", optional: " others cached modified deleted stage ignored unmerged killed error-unmatch full-name exclude-standard directory abbrev exclude "},
		"rev-parse":    {optional: " show-toplevel abbrev-ref git-dir git-common-dir verify quiet is-inside-work-tree is-inside-git-dir is-bare-repository symbolic-full-name symbolic show-prefix show-cdup absolute-git-dir "},
		"rev-list":     {allowsDigits: true, numeric: "n", optional: " count all" + commits + limits},
		"describe":     {optional: " tags always dirty long abbrev contains match exclude exact-match first-parent "},
		"cat-file":     {flags: "ptse", optional: " batch-check "},
		"merge-base":   {optional: " is-ancestor all octopus independent fork-point "},
		"for-each-ref": {optional: " sort ", longWithValue: " count format points-at contains no-contains merged ", longWithNumber: " count "},
		// no operand is allowed, because a repository such as ext::… runs a command line
		"ls-remote": {flags: "htq", maxOperands: -1, optional: " heads tags branches refs quiet exit-code get-url symref sort "},
		"grep":      {flags: "nilwEFcvhHPGqLopW", flagsWithValue: "e", optional: " cached untracked no-index recurse-submodules line-number ignore-case files-with-matches name-only count word-regexp all-match and or not "},
		"branch":    {flags: "arv", maxOperands: -1, optional: " all remotes list show-current verbose no-color column merged no-merged ", longWithValue: " sort contains no-contains points-at "},
		"tag":       {flags: "li", numeric: "n", maxOperands: -1, optional: " list column no-column ignore-case ", longWithValue: " sort format points-at contains no-contains merged "},
		"remote":    {flags: "v", maxOperands: -1, optional: " verbose "},
	}
})
