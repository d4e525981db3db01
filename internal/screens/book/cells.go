package book

import "fmt"

// CellCount counts the cells of a page that are the same in two books, after masking. Cells that are empty in both
// are not counted.
type CellCount struct {
	Page  string `json:"page"` // TAPE.PAGE
	State string `json:"state"`
	Same  int    `json:"same"`
	Total int    `json:"all"`
	Rows  []int  `json:"rows,omitempty"` // rows that differ, from 0
}

// Add returns the sum of two counts.
func (c CellCount) Add(d CellCount) CellCount {
	return CellCount{Same: c.Same + d.Same, Total: c.Total + d.Total}
}

// String returns the counts and the percentage of equal cells. It is 100 % only if all cells are equal.
func (c CellCount) String() string {
	percent := 100.0
	if c.Total > 0 {
		percent = float64(1000*c.Same/c.Total) / 10
	}
	return fmt.Sprintf("%5d/%5d %5.1f %%", c.Same, c.Total, percent)
}

// CompareCells compares the pages that both books contain, cell by cell.
func CompareCells(a, b Book) ([]CellCount, error) {
	before, after, err := readPages(a, b)
	if err != nil {
		return nil, err
	}
	byName := pagesByName(after)
	var counts []CellCount
	for i := range before {
		if p := byName[before[i].FullName()]; p != nil {
			counts = append(counts, countCells(&before[i], p))
		}
	}
	return counts, nil
}

func countCells(a, b *Page) CellCount {
	c := CellCount{Page: a.FullName(), State: a.State}
	before, after := a.Masked(), b.Masked()
	rows := max(len(before), len(after))
	before, after = append(before, make([]string, rows-len(before))...), append(after, make([]string, rows-len(after))...)
	for row := range rows {
		x, y := []rune(before[row]), []rune(after[row])
		differs := false
		for col := range max(len(x), len(y)) {
			m, n := runeAt(x, col), runeAt(y, col)
			switch {
			case m == ' ' && n == ' ':
				continue
			case m == n:
				c.Same++
			default:
				differs = true
			}
			c.Total++
		}
		if differs {
			c.Rows = append(c.Rows, row)
		}
	}
	return c
}

// runeAt returns the character in a column; a row that is shorter continues with spaces.
func runeAt(row []rune, col int) rune {
	if col < len(row) {
		return row[col]
	}
	return ' '
}
