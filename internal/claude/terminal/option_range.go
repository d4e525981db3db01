package terminal

import "slices"

// hiddenOptionsArrow returns "↑" or "↓" for an option next to hidden ones in a permission dialog or overlay, else "".
func (d *dialog) hiddenOptionsArrow(optionIndex, firstVisible, endVisible int) (arrow string) {
	switch {
	case d.state != StatePermission && !d.isOverlay || optionIndex == d.selected:
	case optionIndex == firstVisible && firstVisible > 0:
		return "↑"
	case optionIndex == endVisible-1 && endVisible < d.scrollableOptionCount():
		return "↓"
	}
	return ""
}

// scrollableOptionCount returns the number of options that scroll: those before the first action or horizontal line.
func (d *dialog) scrollableOptionCount() int {
	if at := slices.IndexFunc(d.options, func(o dialogOption) bool { return o.isAction || o.lineAbove }); at >= 0 {
		return at
	}
	return len(d.options)
}

// visibleOptionRange returns the options that are shown. A question, an overlay or a list of models shows as many as
// fit; other dialogs show all, except that a permission dialog on a small screen shows three.
func (d *dialog) visibleOptionRange(cols int) (from, to int) {
	const smallScreen, fewest = 11, 3
	n := d.scrollableOptionCount()
	switch {
	case d.screenRows > 0 && d.screenRows <= smallScreen && d.state == StatePermission:
		from = max(0, min(d.selected, n-1)-fewest+1)
		return from, min(from+fewest, n)
	case d.screenRows == 0 || d.state != StateQuestion && !d.isOverlay && d.kind != "model":
		return 0, n
	}
	height := func(from, to int) (rows int) {
		for i := from; i < to; i++ {
			rows += len(d.optionRows(i, cols)) + map[bool]int{true: 1}[d.options[i].lineAbove]
		}
		return rows
	}
	fixed := 1 + len(d.head) + len(d.foot) + height(n, len(d.options))
	if d.isOverlay {
		fixed = rowsOutsideOverlayChoices + 1 // one row of the text
		for _, text := range slices.Concat(d.question, d.foot) {
			fixed += len(wrapKeepingIndent(text, cols))
		}
		if height(0, n) > d.screenRows-fixed {
			fixed++
		}
	}
	last := min(d.selected, n-1)
	if d.kind == "model" {
		return d.visibleModelRange(height)
	}
	for from < last && height(from, last+1) > d.screenRows-fixed {
		from++
	}
	to = last + 1
	for to < n && height(from, to+1) <= d.screenRows-fixed {
		to++
	}
	return from, to
}

// visibleModelRange returns the models that the list shows. height returns the rows of a range of options.
func (d *dialog) visibleModelRange(height func(from, to int) int) (from, to int) {
	const rowsAround, rowsForTwo = 16, 16
	n, room := len(d.options), d.screenRows-rowsAround
	count := 1
	for count < n && height(0, count+1)+min(1, n-count-1) <= room || count < 2 && d.screenRows >= rowsForTwo {
		count++
	}
	from = max(0, d.selected-count+1)
	return from, from + count
}
