package shellcmd

func gitGrammar(subcommand string) (g optionGrammar, ok bool) {
	const (
		commits = " oneline graph all decorate no-decorate abbrev-commit no-abbrev-commit reverse merges no-merges first-parent " +
			"follow date format pretty topo-order date-order author-date-order left-right no-walk cherry-pick branches tags remotes " +
			"relative-date source full-history simplify-merges ancestry-path "
		limits = " max-count skip since until after before author committer grep "
	)
	const counts = " oneline decorate no-decorate abbrev-commit first-parent relative-date stat numstat shortstat name-only name-status color no-color " +
		"patch no-patch no-ext-diff "
	switch subcommand {
	case "status":
		return optionGrammar{
			flags: "sbv", flagsWithValue: "uM", longNames: " short porcelain branch ignored verbose column no-column no-renames ahead-behind long ",
			longWithValue: " untracked-files ignore-submodules find-renames ",
		}, true
	case "log":
		return optionGrammar{
			flags: "ps", flagsWithValue: "nGS", allowsDigits: true,
			longNames: counts + " graph all reverse merges no-merges follow topo-order date-order author-date-order left-right no-walk cherry-pick cherry-mark " +
				"branches tags remotes source full-history simplify-merges ancestry-path walk-reflogs boundary pickaxe-all pickaxe-regex ",
			longWithValue: " date max-count skip since until after before author committer grep diff-filter format pretty ",
		}, true
	case "show":
		return optionGrammar{
			flags: "psm", flagsWithValue: "GS", allowsDigits: true, longNames: counts + " graph word-diff color-words raw quiet ",
			longWithValue: " date word-diff-regex diff-filter format pretty ",
		}, true
	case "shortlog":
		return optionGrammar{
			flags: "snec", allowsDigits: true, longNames: " all no-merges branches tags remotes committer summary numbered email ",
			longWithValue: " since until after before author group ",
		}, true
	case "diff":
		return optionGrammar{
			flags: "pMCRsuBD", flagsWithValue: "lGOS",
			longNames: " stat numstat shortstat summary name-only name-status color no-color word-diff color-words minimal patience histogram " +
				"pickaxe-all pickaxe-regex no-ext-diff ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines full-index binary " +
				"function-context no-renames find-renames find-copies find-copies-harder break-rewrites irreversible-delete exit-code quiet check " +
				"dirstat cached staged no-index ",
			longWithValue: " word-diff-regex diff-algorithm diff-filter abbrev inter-hunk-context ws-error-highlight relative ",
		}, true
	case "blame":
		return optionGrammar{flags: "wCMlseptfn", flagsWithValue: "L", optional: " porcelain line-porcelain show-name show-number show-email date color-lines color-by-age "}, true
	case "ls-files":
		return optionGrammar{flags: "ocmdsiutzkvf", flagsWithValue: "xX", optional: " others cached modified deleted stage ignored unmerged killed error-unmatch full-name exclude-standard directory abbrev exclude "}, true
	case "rev-parse":
		return optionGrammar{optional: " show-toplevel abbrev-ref git-dir git-common-dir verify quiet is-inside-work-tree is-inside-git-dir is-bare-repository symbolic-full-name symbolic show-prefix show-cdup absolute-git-dir "}, true
	case "rev-list":
		return optionGrammar{allowsDigits: true, numeric: "n", optional: " count all" + commits + limits}, true
	case "describe":
		return optionGrammar{optional: " tags always dirty long abbrev contains match exclude exact-match first-parent "}, true
	case "cat-file":
		return optionGrammar{flags: "ptse", optional: " batch-check "}, true
	case "merge-base":
		return optionGrammar{optional: " is-ancestor all octopus independent fork-point "}, true
	case "for-each-ref":
		return optionGrammar{optional: " sort ", longWithValue: " count format points-at contains no-contains merged ", longWithNumber: " count "}, true
	case "ls-remote": // a name may be a command line: ext::…
		return optionGrammar{flags: "htq", maxOperands: -1, optional: " heads tags branches refs quiet exit-code get-url symref sort "}, true
	case "grep":
		return optionGrammar{flags: "nilwEFcvhHPGqLopW", flagsWithValue: "e", optional: " cached untracked no-index recurse-submodules line-number ignore-case files-with-matches name-only count word-regexp all-match and or not "}, true
	case "branch":
		return optionGrammar{flags: "arv", maxOperands: -1, optional: " all remotes list show-current verbose no-color column merged no-merged ", longWithValue: " sort contains no-contains points-at "}, true
	case "tag":
		return optionGrammar{flags: "li", numeric: "n", maxOperands: -1, optional: " list column no-column ignore-case ", longWithValue: " sort format points-at contains no-contains merged "}, true
	case "remote":
		return optionGrammar{flags: "v", maxOperands: -1, optional: " verbose "}, true
	}
	return optionGrammar{}, false
}
