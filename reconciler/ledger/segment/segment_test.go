package segment

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"reflect"
	"testing"
)

func TestUnpack(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      map[string][]byte // nil for an error
	}{
		{"no records", "", map[string][]byte{}},
		{"two records", "\x01a\x04xyz\x02bc\x02z", map[string][]byte{"a": []byte("xyz"), "bc": []byte("z")}},
		{"a deleted one", "\x01a\x00\x01b\x02z", map[string][]byte{"a": nil, "b": []byte("z")}},
		{"an empty one", "\x01a\x01", map[string][]byte{"a": {}}},
		{"no end of a size", "\x80", nil},
		{"no key", "\x01", nil},
		{"part of a key", "\x02a", nil},
		{"no value", "\x01a", nil},
		{"no end of the size of a value", "\x01a\x80", nil},
		{"part of a value", "\x01a\x04xy", nil},
		{"a size above that of any slice", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", nil},
	} {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		w.Write([]byte(c.raw))
		w.Close()
		got, err := unpack(zipped.Bytes(), 1<<20)
		if (err != nil) != (c.want == nil) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// A segment is read up to the size that its index entry has, however small its compressed parts are, and
// one of the smallest records is read.
func TestUnpackIsBounded(t *testing.T) {
	small := map[string][]byte{"a": {}, "b": nil, "": {}, "c": {}}
	for name, records := range map[string]map[string][]byte{"small": small, "large": {"a": make([]byte, 1<<20)}} {
		seg, parts, err := Pack(ID{}, records)
		if err != nil {
			t.Fatal(err)
		}
		raw := bytes.Join(parts, nil)
		if got, err := unpack(raw, seg.plain()); err != nil || !reflect.DeepEqual(got, records) {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
		seg.Bytes /= 4
		if _, err := unpack(raw, seg.plain()); name == "large" && err == nil {
			t.Errorf("%s: %d bytes decompress to more than %d", name, len(raw), seg.plain())
		}
	}
}

// Values are not copied, since a segment may have a hundred thousand records.
func TestUnpackAllocatesLittle(t *testing.T) {
	records := map[string][]byte{}
	for n := range 10_000 {
		records[fmt.Sprintf("record %d", n)] = []byte("value")
	}
	_, parts, err := Pack(ID{}, records)
	if err != nil {
		t.Fatal(err)
	}
	raw := bytes.Join(parts, nil)
	got := testing.AllocsPerRun(1, func() {
		if _, err := unpack(raw, 1<<20); err != nil {
			t.Fatal(err)
		}
	})
	if most := 1.5 * float64(len(records)); got > most { // each key is a string
		t.Errorf("%.0f allocations for %d records, want at most %.0f", got, len(records), most)
	}
}
