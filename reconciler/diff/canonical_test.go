package diff

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// orders are sets of fields as an API server writes them, whose values sort differently than
// their text.
var orders = map[string]string{
	"numbers":         `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}},"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}`,
	"negative":        `{"f:l":{"k:{\"n\":-20}":{".":{},"f:v":{}},"k:{\"n\":-1}":{".":{},"f:v":{}},"k:{\"n\":9}":{".":{},"f:v":{}},"k:{\"n\":100}":{".":{},"f:v":{}}}}`,
	"several keys":    `{"f:l":{"k:{\"n\":9,\"t\":\"b\"}":{".":{},"f:v":{}},"k:{\"n\":100,\"t\":\"a\"}":{".":{},"f:v":{}}}}`,
	"texts":           `{"f:l":{"k:{\"t\":\"a\"}":{".":{},"f:v":{}},"k:{\"t\":\"a b\"}":{".":{},"f:v":{}},"k:{\"t\":\"a!\"}":{".":{},"f:v":{}}}}`,
	"booleans":        `{"f:l":{"k:{\"b\":false}":{".":{},"f:v":{}},"k:{\"b\":true}":{".":{},"f:v":{}}}}`,
	"a set":           `{"f:l":{"v:\"a\"":{},"v:\"a b\"":{}}}`,
	"a numeric set":   `{"f:l":{"v:9":{},"v:80":{},"v:443":{}}}`,
	"positions":       `{"f:l":{"i:9":{},"i:10":{}}}`,
	"escaped text":    `{"f:data":{"f:a&b":{},"f:a<b":{}},"f:l":{"v:\"\\u003c\"":{}}}`,
	"names of fields": `{"f:metadata":{"f:annotations":{".":{},"f:a":{},"f:a-b":{},"f:a.b/c":{}}}}`,
}

func hashOf(raw string) string {
	return ApplyHash([]metav1.ManagedFieldsEntry{{
		Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(raw),
	}}, api.FieldManager)
}

// The metadata in the response to an apply is in the server's order. That of a watched object
// has been through Go maps, which sort by text.
func TestApplyHashIsOfTheSetAndNotOfItsText(t *testing.T) {
	for name, written := range orders {
		t.Run(name, func(t *testing.T) {
			var decoded any
			if err := json.Unmarshal([]byte(written), &decoded); err != nil {
				t.Fatal(err)
			}
			watched, err := json.Marshal(decoded)
			if err != nil {
				t.Fatal(err)
			}
			if hashOf(written) != hashOf(string(watched)) {
				t.Errorf("the hash depends on the order:\n%s\n%s", written, watched)
			}
		})
	}
}

// Inventories have the hash of the bytes of the server's response to an apply. After an upgrade
// of gitfleet, the hash must still be the same.
func TestApplyHashIsThatOfTheServersBytes(t *testing.T) {
	for name, written := range orders {
		t.Run(name, func(t *testing.T) {
			sum := sha256.Sum256([]byte(written))
			if got := hashOf(written); got != hex.EncodeToString(sum[:]) {
				t.Errorf("%s is not the hash of %s", got, written)
			}
		})
	}
}

func TestApplyHashTellsSetsApart(t *testing.T) {
	seen := map[string]string{}
	for name, written := range orders {
		if other, taken := seen[hashOf(written)]; taken {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[hashOf(written)] = name
	}
	if hashOf(`{"f:l":{"v:80":{},"v:443":{}}}`) == hashOf(`{"f:l":{"v:80":{},"v:444":{}}}`) {
		t.Error("another item has the same hash")
	}
	if got, again := hashOf(`{"v:broken`), hashOf(`{"v:broken`); got == "" || got != again {
		t.Error("what cannot be parsed has no hash of its own")
	}
}

func BenchmarkApplyHash(b *testing.B) {
	for name, raw := range map[string]string{"keyed": orders["numbers"], "plain": orders["names of fields"]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hashOf(raw)
			}
		})
	}
}
