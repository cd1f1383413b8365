package store

import (
	"encoding/json"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// JSON is how the encoder calls itself that writes Object.JSON and a line feed.
const JSON runtime.Identifier = "gitfleet/json"

// events remembers what the identifiers of events say: there are few.
var events sync.Map

// plainEvent returns the type of an event if an identifier is that of one in
// JSON with the whole object in it. That is most of what is ever watched, and
// the largest.
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
