package listitem

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

var (
	// plainField is a name of a field that needs no quotes in a path, and plainItem the key of an item.
	plainField = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	plainItem  = regexp.MustCompile(`^[A-Za-z0-9_./:-]+$`)
)

// Path returns a JSON pointer into an object as a person would write it, with the keys of items instead of their
// indexes: spec.template.spec.containers[web].env[LEVEL].value. An item that the object does not have is named by the
// value that is added there, if it has the key of the list. Items without a key keep their indexes. The object may be
// nil.
func Path(object any, pointer string, added any) string {
	var b strings.Builder
	keys := api.SplitPointer(pointer)
	for i, key := range keys {
		list, isList := object.([]any)
		if !isList {
			writeField(&b, key)
			object = asMap(object)[key]
			continue
		}
		index, err := strconv.Atoi(key)
		switch {
		case err == nil && index >= 0 && index < len(list):
			object = list[index]
		case i == len(keys)-1: // behind the last item
			object, list = added, append(slices.Clone(list), added)
		default:
			object = nil
		}
		name := key
		if by := Key(list); by != "" && asMap(object)[by] != nil {
			if name = fmt.Sprint(asMap(object)[by]); !plainItem.MatchString(name) {
				name = strconv.Quote(name)
			}
		}
		b.WriteString("[" + name + "]")
	}
	return b.String()
}

// writeField appends a field of a map to a path.
func writeField(b *strings.Builder, key string) {
	switch {
	case !plainField.MatchString(key):
		b.WriteString("[" + strconv.Quote(key) + "]")
	case b.Len() == 0:
		b.WriteString(key)
	default:
		b.WriteString("." + key)
	}
}
