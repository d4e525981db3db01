package telemetry

import (
	_ "embed" // for table.txt
	"strings"
)

// metricEventOrSpanRow describes one metric, event or span. It has the names of the attributes in the order of the real CLI,
// without the attributes that all rows share. Attributes that have no value are not sent.
type metricEventOrSpanRow struct {
	name, attributeNames string
	description          string // description of a metric, shortened if that of the real CLI is long
	unit                 string
}

// signalTable has a line for each metric, event and span: signal, name, attributes, description and unit. Tabs separate the columns.
//
//go:embed table.txt
var signalTable string

func rowsBySignalName() map[string][]metricEventOrSpanRow {
	rows := map[string][]metricEventOrSpanRow{}
	for line := range strings.Lines(signalTable) {
		columns := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "", "", "")
		rows[columns[0]] = append(rows[columns[0]], metricEventOrSpanRow{columns[1], columns[2], columns[3], columns[4]})
	}
	return rows
}

const signalNamePrefix = "claude_code."

type attributeValues map[string]any

func (r metricEventOrSpanRow) attributesOf(v attributeValues) []attribute {
	var list []attribute
	for key := range strings.FieldsSeq(r.attributeNames) {
		if x, ok := v[key]; ok && x != nil && x != "" {
			list = append(list, attribute{key, newValue(x)})
		}
	}
	return list
}

func findRowByName(rows []metricEventOrSpanRow, name string) metricEventOrSpanRow {
	for _, r := range rows {
		if r.name == name {
			return r
		}
	}
	return metricEventOrSpanRow{}
}
