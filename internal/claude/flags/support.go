package flags

// Listed is one flag of the real CLI.
type Listed struct {
	Flag      string // as shown in help
	Name      string // long name
	HasEffect bool
}

// List lists every flag in the order of its groups.
func List() (list []Listed) {
	for _, o := range claudeOptions(&Flags{}) {
		list = append(list, Listed{o.Flags, o.Name(), o.Set != nil})
	}
	return list
}
