package store

import (
	"encoding/json"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// JSON is the identifier of the encoder that writes Object.JSON and a line feed.
const JSON runtime.Identifier = "gitfleet/json"

// events caches the parsed identifiers of events: there are few.
var events sync.Map

// plainEvent returns the type of an event if the identifier is that of an event in JSON with
// the whole object. Most watched events are, and they are the largest.
func plainEvent(id runtime.Identifier) string {
	if event, known := events.Load(id); known {
		return event.(string)
	}
	var parts struct{ Name, EmbeddedEncoder, Encoder, EventType string }
	event := ""
	if json.Unmarshal([]byte(id), &parts) == nil && parts.Name == "watch" &&
		parts.EmbeddedEncoder == string(JSON) && parts.Encoder == string(JSON) {
		event = parts.EventType
	}
	events.Store(id, event)
	return event
}

// writeEvent writes a watch event.
func (o *Object) writeEvent(event string, w io.Writer) error {
	object, err := o.JSON()
	if err != nil {
		return err
	}
	for _, part := range [][]byte{[]byte(`{"type":"` + event + `","object":`), object, []byte("}\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// CacheEncode writes what encode writes. An event with the whole object is written without
// calling encode and without a copy, since a thousand watchers may share it.
func (o *Object) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if event := plainEvent(id); event != "" {
		return o.writeEvent(event, w)
	}
	return encode(o, w)
}
