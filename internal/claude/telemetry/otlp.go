package telemetry

import (
	_ "embed" // for table.txt
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// These types are the messages of OTLP 1.x, limited to what the CLI sends. The tag json is a field's name in OTLP/JSON;
// the tag pb is its number in OTLP/protobuf. The fields are in the order in which the real CLI writes them as JSON.
type (
	exportRequest struct {
		Logs    []resourceLogs    `json:"resourceLogs,omitempty" pb:"1"`
		Metrics []resourceMetrics `json:"resourceMetrics,omitempty" pb:"1"`
		Spans   []resourceSpans   `json:"resourceSpans,omitempty" pb:"1"`

		countsByName map[string]int // numbers of data points, events and spans, by full name
	}
	resourceLogs struct {
		Resource telemetryResource `json:"resource" pb:"1"`
		Scopes   []scopeLogs       `json:"scopeLogs" pb:"2"`
	}
	resourceMetrics struct {
		Resource telemetryResource `json:"resource" pb:"1"`
		Scopes   []scopeMetrics    `json:"scopeMetrics" pb:"2"`
	}
	resourceSpans struct {
		Resource telemetryResource `json:"resource" pb:"1"`
		Scopes   []scopeSpans      `json:"scopeSpans" pb:"2"`
	}
	telemetryResource struct {
		Attributes []attribute `json:"attributes" pb:"1"`
		Dropped    uint32      `json:"droppedAttributesCount" pb:"2"`
	}
	instrumentationScope struct {
		Name    string `json:"name" pb:"1"`
		Version string `json:"version" pb:"2"`
	}
	scopeLogs struct {
		Scope   instrumentationScope `json:"scope" pb:"1"`
		Records []logRecord          `json:"logRecords" pb:"2"`
	}
	scopeMetrics struct {
		Scope   instrumentationScope `json:"scope" pb:"1"`
		Metrics []metricData         `json:"metrics" pb:"2"`
	}
	scopeSpans struct {
		Scope instrumentationScope `json:"scope" pb:"1"`
		Spans []spanData           `json:"spans" pb:"2"`
	}
	logRecord struct {
		Time       unixNanoseconds `json:"timeUnixNano" pb:"1"`
		Observed   unixNanoseconds `json:"observedTimeUnixNano" pb:"11"`
		Body       otlpValue       `json:"body" pb:"5"`
		Attributes []attribute     `json:"attributes" pb:"6"`
		Dropped    uint32          `json:"droppedAttributesCount" pb:"7"`
		Flags      fixed32         `json:"flags,omitempty" pb:"8"`
		TraceID    hexID           `json:"traceId,omitempty" pb:"9"`
		SpanID     hexID           `json:"spanId,omitempty" pb:"10"`
	}
	metricData struct {
		Name        string  `json:"name" pb:"1"`
		Description string  `json:"description" pb:"2"`
		Unit        string  `json:"unit" pb:"3"`
		Sum         sumData `json:"sum" pb:"7"`
	}
	sumData struct {
		Temporality uint32      `json:"aggregationTemporality" pb:"2"`
		Monotonic   bool        `json:"isMonotonic" pb:"3"`
		Points      []dataPoint `json:"dataPoints" pb:"1"`
	}
	dataPoint struct {
		Attributes []attribute     `json:"attributes" pb:"7"`
		Start      unixNanoseconds `json:"startTimeUnixNano" pb:"2"`
		Time       unixNanoseconds `json:"timeUnixNano" pb:"3"`
		Value      *float64        `json:"asDouble" pb:"4"`
	}
	spanData struct {
		TraceID       hexID           `json:"traceId" pb:"1"`
		SpanID        hexID           `json:"spanId" pb:"2"`
		Parent        hexID           `json:"parentSpanId,omitempty" pb:"4"`
		Name          string          `json:"name" pb:"5"`
		Kind          uint32          `json:"kind" pb:"6"`
		Start         unixNanoseconds `json:"startTimeUnixNano" pb:"7"`
		End           unixNanoseconds `json:"endTimeUnixNano" pb:"8"`
		Attributes    []attribute     `json:"attributes" pb:"9"`
		Dropped       uint32          `json:"droppedAttributesCount" pb:"10"`
		Events        []spanEvent     `json:"events" pb:"11"`
		DroppedEvents uint32          `json:"droppedEventsCount" pb:"12"`
		Status        spanStatus      `json:"status" pb:"15"`
		Links         []struct{}      `json:"links" pb:"13"`
		DroppedLinks  uint32          `json:"droppedLinksCount" pb:"14"`
		Flags         fixed32         `json:"flags,omitempty" pb:"16"`
	}
	spanEvent struct {
		Attributes []attribute     `json:"attributes" pb:"3"`
		Name       string          `json:"name" pb:"2"`
		Time       unixNanoseconds `json:"timeUnixNano" pb:"1"`
		Dropped    uint32          `json:"droppedAttributesCount" pb:"4"`
	}
	spanStatus struct {
		Code    uint32 `json:"code" pb:"3"`
		Message string `json:"message,omitempty" pb:"2"`
	}
	attribute struct {
		Key   string    `json:"key" pb:"1"`
		Value otlpValue `json:"value" pb:"2"`
	}
	// otlpValue holds one value: exactly one of its fields is set.
	otlpValue struct {
		String *string    `json:"stringValue,omitempty" pb:"1"`
		Bool   *bool      `json:"boolValue,omitempty" pb:"2"`
		Int    *int64     `json:"intValue,omitempty" pb:"3"`
		Double *float64   `json:"doubleValue,omitempty" pb:"4"`
		Array  *arrayData `json:"arrayValue,omitempty" pb:"5"`
	}
	arrayData struct {
		Values []otlpValue `json:"values" pb:"1"`
	}

	unixNanoseconds uint64 // Unix time; a string in JSON, fixed64 in protobuf
	fixed32         uint32
	hexID           []byte // hexadecimal in JSON
)

// MarshalJSON writes the time as a string, because a JSON number would lose digits.
func (n unixNanoseconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(n), 10)), nil
}

func (h hexID) MarshalJSON() ([]byte, error) { return json.Marshal(hex.EncodeToString(h)) }

// newValue converts a Go value. A type that OTLP attributes cannot represent becomes a string with its JSON.
func newValue(v any) otlpValue {
	switch v := v.(type) {
	case string:
		return otlpValue{String: &v}
	case bool:
		return otlpValue{Bool: &v}
	case int:
		return otlpValue{Int: new(int64(v))}
	case float64:
		return otlpValue{Double: &v}
	case []string:
		list := &arrayData{Values: []otlpValue{}}
		for _, s := range v {
			list.Values = append(list.Values, newValue(s))
		}
		return otlpValue{Array: list}
	default:
		text, _ := json.Marshal(v)
		return newValue(string(text))
	}
}

// appendProto appends the protobuf encoding of a message: a struct whose fields have the tag pb. It omits nil pointers
// and zero values, but not zero structs.
func appendProto(b []byte, message reflect.Value) []byte {
	for i := range message.NumField() {
		number, err := strconv.Atoi(message.Type().Field(i).Tag.Get("pb"))
		if err != nil {
			continue
		}
		field := message.Field(i)
		switch {
		case field.Kind() == reflect.Pointer:
			if !field.IsNil() {
				b = appendFieldEvenIfZero(b, number, field.Elem())
			}
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			for j := range field.Len() {
				b = appendFieldEvenIfZero(b, number, field.Index(j))
			}
		case field.Kind() == reflect.Struct || !field.IsZero():
			b = appendFieldEvenIfZero(b, number, field)
		}
	}
	return b
}

func appendFieldEvenIfZero(b []byte, number int, v reflect.Value) []byte {
	const varint, fixed8, counted, fixed4 = 0, 1, 2, 5
	tag := func(wireType int) []byte { return binary.AppendUvarint(b, uint64(number<<3|wireType)) }
	bytes := func(p []byte) []byte { return append(binary.AppendUvarint(tag(counted), uint64(len(p))), p...) }
	switch x := v.Interface().(type) {
	case unixNanoseconds:
		return binary.LittleEndian.AppendUint64(tag(fixed8), uint64(x))
	case fixed32:
		return binary.LittleEndian.AppendUint32(tag(fixed4), uint32(x))
	case float64:
		return binary.LittleEndian.AppendUint64(tag(fixed8), math.Float64bits(x))
	case uint32:
		return binary.AppendUvarint(tag(varint), uint64(x))
	case int64:
		return binary.AppendUvarint(tag(varint), uint64(x))
	case bool:
		n := uint64(0)
		if x {
			n = 1
		}
		return binary.AppendUvarint(tag(varint), n)
	case string:
		return bytes([]byte(x))
	case hexID:
		return bytes(x)
	default:
		return bytes(appendProto(nil, v))
	}
}

func encodeRequest(request exportRequest, protocol string) ([]byte, error) {
	if protocol == protocolHTTPJSON {
		return json.Marshal(request)
	}
	body := appendProto(nil, reflect.ValueOf(request))
	if protocol == protocolGRPC { // one message that is not compressed
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	return body, nil
}

// parseKeyValuePairs reads the form "a=b,c=d" of OpenTelemetry variables. It keeps the order and percent-decodes the values.
func parseKeyValuePairs(text string) (pairs [][2]string) {
	for item := range strings.SplitSeq(text, ",") {
		key, val, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok || strings.TrimSpace(key) == "" {
			continue
		}
		val = strings.TrimSpace(val)
		if decoded, err := url.PathUnescape(val); err == nil { // an invalid encoding is kept
			val = decoded
		}
		pairs = append(pairs, [2]string{strings.TrimSpace(key), val})
	}
	return pairs
}

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
