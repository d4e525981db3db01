package shellcmd

// gitGrammar returns the known options of a git subcommand.
func gitGrammar(sub string) (g grammar, ok bool) {
	const (
		diffs = " stat numstat shortstat summary name-only name-status color no-color word-diff patch no-patch minimal patience " +
			"histogram diff-filter no-ext-diff no-textconv ignore-all-space ignore-space-change ignore-blank-lines full-index binary abbrev " +
			"inter-hunk-context no-renames find-renames find-copies exit-code quiet check ws-error-highlight dirstat "
		commits = " oneline graph all decorate no-decorate abbrev-commit no-abbrev-commit reverse merges no-merges first-parent " +
			"follow date format pretty topo-order date-order author-date-order left-right no-walk cherry-pick branches tags remotes " +
			"relative-date source full-history simplify-merges ancestry-path "
		limits = " max-count skip since until after before author committer grep "
	)
	switch sub {
	case "status":
		return grammar{flags: "sbv", valued: "uM", optional: " short porcelain branch untracked-files ignored verbose column no-column no-renames show-stash ahead-behind long "}, true
	case "log", "show", "shortlog":
		g = grammar{flags: "ps", valued: "nGS", digits: true, optional: diffs + commits + limits + " summary numbered email group "}
		switch sub {
		case "show":
			g.flags, g.valued = "psm", "GS"
		case "shortlog":
			g.flags, g.valued = "snec", ""
		}
		return g, true
	case "diff":
		return grammar{flags: "pMCRsuBD", valued: "lGOS", optional: diffs + " cached staged no-index merge-base "}, true
	case "blame":
		return grammar{flags: "wCMlseptfn", valued: "L", optional: " porcelain line-porcelain show-name show-number show-email date color-lines color-by-age "}, true
	case "ls-files":
		return grammar{flags: "ocmdsiutzkvf", valued: "xX", optional: " others cached modified deleted stage ignored unmerged killed error-unmatch full-name exclude-standard directory abbrev exclude "}, true
	case "rev-parse":
		return grammar{optional: " show-toplevel abbrev-ref git-dir git-common-dir verify quiet is-inside-work-tree is-inside-git-dir is-bare-repository symbolic-full-name symbolic show-prefix show-cdup absolute-git-dir "}, true
	case "rev-list":
		return grammar{digits: true, counts: "n", optional: " count all" + commits + limits}, true
	case "describe":
		return grammar{optional: " tags always dirty long abbrev contains match exclude exact-match first-parent "}, true
	case "cat-file":
		return grammar{flags: "ptse", optional: " batch-check "}, true
	case "merge-base":
		return grammar{optional: " is-ancestor all octopus independent fork-point "}, true
	case "for-each-ref":
		return grammar{optional: " sort count "}, true
	case "ls-remote": // a name may be a command line: ext::…
		return grammar{flags: "htq", maxOperands: -1, optional: " heads tags branches refs quiet exit-code get-url symref sort "}, true
	case "grep":
		return grammar{flags: "nilwEFcvhHPGqLopW", valued: "e", optional: " cached untracked no-index recurse-submodules line-number ignore-case files-with-matches name-only count word-regexp all-match and or not "}, true
	case "branch":
		return grammar{flags: "arv", maxOperands: -1, optional: " all remotes list show-current verbose no-color column merged no-merged sort ", longWithValue: " contains no-contains "}, true
	case "tag":
		return grammar{flags: "l", maxOperands: -1, optional: " list sort "}, true
	case "remote":
		return grammar{flags: "v", maxOperands: -1, optional: " verbose "}, true
	}
	return grammar{}, false
}
