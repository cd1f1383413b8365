package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// HashOf returns the hash of a value as JSON with sorted keys, in lower-case hexadecimal digits: with a key its HMAC, from
// which nobody without the key can guess the value, and else its SHA-256.
func HashOf(v any, key []byte) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if key == nil {
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:]), nil
	}
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// SecretFields returns the paths of the fields whose values are secret although the object is no Secret, as
// SecretFieldsAnnotation lists them. An index stands for every item of its list.
func SecretFields(object map[string]any) [][]string {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[SecretFieldsAnnotation].(string)
	if text == "" {
		return nil
	}
	pointers, _ := Pointers(text) // a malformed pointer matches nothing
	paths := make([][]string, len(pointers))
	for i, p := range pointers {
		paths[i] = SplitPointer(p)
	}
	return paths
}

// SetSecretFields lists the fields in SecretFieldsAnnotation, beside those that it lists. It changes the object.
func SetSecretFields(object map[string]any, paths [][]string) {
	paths = slices.Concat(SecretFields(object), paths)
	pointers := make([]string, len(paths))
	for i, p := range paths {
		for _, key := range p {
			if strings.ContainsAny(key, ", \t\r\n") {
				break // no list of pointers can have it: what is above it is secret as a whole
			}
			pointers[i] += "/" + EscapeKey(key)
		}
	}
	slices.Sort(pointers)
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[SecretFieldsAnnotation] = strings.Join(slices.Compact(pointers), " ")
}
