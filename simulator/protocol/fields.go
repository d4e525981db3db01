package protocol

// FieldValue returns the value of a key; nil means that the event does not have the key.
func (s *System) FieldValue(key string) (valueOrNil any) {
	for _, f := range s.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Text returns the value of a key, or "" if the value is missing or not a string.
func (s *System) Text(key string) string {
	value, _ := s.FieldValue(key).(string)
	return value
}
