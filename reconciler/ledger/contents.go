package ledger

// Contents describes what a shared ledger has stored, and how much space it needs.
type Contents struct {
	Placements int
	// Objects is the number of the index and of the parts of segments in it, Bytes their total
	// size, and Largest the size of the largest.
	Objects, Bytes, Largest int
	// Unused is the number of parts that the index does not list. The next leader deletes them.
	Unused int
}

// Contents reads the whole ledger and changes nothing. Any goroutine may call it.
func (s *Shared) Contents() (Contents, error) {
	var c Contents
	measured := &measuredObjects{s.objects, map[string]int{}}
	all, err := (&Shared{objects: measured}).read()
	if err != nil {
		return c, err
	}
	l, err := decode(all.records)
	if err != nil {
		return c, damagedShared(err.Error())
	}
	names, err := s.objects.List()
	if err != nil {
		return c, err
	}
	c.Placements, c.Unused = len(l.Placements()), len(all.index.unnamed(names))
	parts := all.index.parts()
	for name, size := range measured.sizes {
		if parts[name] || name == indexName && all.version != "" {
			c.Objects++
			c.Bytes += size
			c.Largest = max(c.Largest, size)
		}
	}
	return c, nil
}

// measuredObjects records the sizes of the objects that are read.
type measuredObjects struct {
	Objects
	sizes map[string]int
}

// Get implements Objects.
func (m *measuredObjects) Get(name string) ([]byte, string, error) {
	value, version, err := m.Objects.Get(name)
	m.sizes[name] = len(value)
	return value, version, err
}
