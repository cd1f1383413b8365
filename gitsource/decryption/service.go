package decryption

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
)

// A service is a key service of SOPS (sops keyservice), which decrypts keys with those of a cloud provider. It is reached on
// the same machine or pod, without TLS.
type service struct{ address string }

const decryptMethod = "/KeyService/Decrypt"

// numbers are the protobuf field numbers of SOPS's key service: that of each kind of key in the message Key, and those of the
// fields of that key.
var numbers = map[string]struct {
	kind   protowire.Number
	fields map[string]protowire.Number
}{
	"kms":      {1, map[string]protowire.Number{"arn": 1, "role": 2, "aws_profile": 4}},
	"gcp_kms":  {3, map[string]protowire.Number{"resource_id": 1}},
	"azure_kv": {4, map[string]protowire.Number{"vault_url": 1, "name": 2, "version": 3}},
	"hc_vault": {5, map[string]protowire.Number{"vault_address": 1, "engine_path": 2, "key_name": 3}},
	"hckms":    {7, map[string]protowire.Number{"key_id": 1}},
}

const awsContext = 3

// request encodes a DecryptRequest.
func request(r sops.Recipient) []byte {
	known := numbers[r.Kind]
	var inner []byte
	for name, number := range known.fields {
		if value := r.Fields[name]; value != "" {
			inner = appendBytes(inner, number, []byte(value))
		}
	}
	for name, value := range r.Context {
		inner = appendBytes(inner, awsContext, appendBytes(appendBytes(nil, 1, []byte(name)), 2, []byte(value)))
	}
	out := appendBytes(nil, 1, appendBytes(nil, known.kind, inner))
	return appendBytes(out, 2, []byte(r.Encrypted))
}

func appendBytes(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

// response decodes a DecryptResponse.
func response(data []byte) ([]byte, error) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			break
		}
		data = data[n:]
		if number == 1 && kind == protowire.BytesType {
			if value, n := protowire.ConsumeBytes(data); n >= 0 {
				return value, nil
			}
			break
		}
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			break
		}
		data = data[n:]
	}
	return nil, errors.New("the answer has no key")
}

// raw passes messages as they are.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (s *service) decrypt(ctx context.Context, r sops.Recipient) ([]byte, error) {
	if _, known := numbers[r.Kind]; !known {
		return nil, fmt.Errorf("%s: not a kind of key that it decrypts", r.Name())
	}
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	in, out := request(r), []byte(nil)
	if err := connection.Invoke(ctx, decryptMethod, &in, &out, grpc.ForceCodec(raw{})); err != nil {
		return nil, fmt.Errorf("%s: %s", r.Name(), status.Convert(err).Code())
	}
	return response(out)
}
