package grpcmw_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// protoFile returns the file of a package with one service for each list of methods;
// one without a level has no options.
func protoFile(t testing.TB, pkg string, services map[string]map[string]*descriptorpb.MethodOptions_IdempotencyLevel) protoreflect.FileDescriptor {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String(pkg + ".proto"), Package: proto.String(pkg),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
	}
	for service, methods := range services {
		s := &descriptorpb.ServiceDescriptorProto{Name: proto.String(service)}
		for method, level := range methods {
			m := &descriptorpb.MethodDescriptorProto{
				Name: proto.String(method), InputType: proto.String("." + pkg + ".M"), OutputType: proto.String("." + pkg + ".M"),
			}
			if level != nil {
				m.Options = &descriptorpb.MethodOptions{IdempotencyLevel: level}
			}
			s.Method = append(s.Method, m)
		}
		file.Service = append(file.Service, s)
	}
	d, err := protodesc.NewFile(file, &protoregistry.Files{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestIdempotentMethodsAreThoseThatPromiseEnough(t *testing.T) {
	unknown := descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN.Enum()
	safe := descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Enum()
	idempotent := descriptorpb.MethodOptions_IDEMPOTENT.Enum()
	type methods = map[string]*descriptorpb.MethodOptions_IdempotencyLevel
	shop := protoFile(t, "shop", map[string]methods{
		"Stock": {"Get": safe, "List": safe, "Set": idempotent, "Add": nil, "Take": unknown},
		"Bill":  {"Void": idempotent, "Pay": nil},
	})
	bank := protoFile(t, "bank.v1", map[string]methods{"Rates": {"Get": safe}})
	for _, c := range []struct {
		level descriptorpb.MethodOptions_IdempotencyLevel
		files []protoreflect.FileDescriptor
		want  []string
	}{
		{*safe, []protoreflect.FileDescriptor{shop}, []string{"/shop.Stock/Get", "/shop.Stock/List"}},
		{*idempotent, []protoreflect.FileDescriptor{shop}, []string{"/shop.Bill/Void", "/shop.Stock/Get", "/shop.Stock/List", "/shop.Stock/Set"}},
		{*safe, []protoreflect.FileDescriptor{shop, bank, shop}, []string{"/bank.v1.Rates/Get", "/shop.Stock/Get", "/shop.Stock/List"}},
		{*unknown, []protoreflect.FileDescriptor{shop, bank}, nil},
		{99, []protoreflect.FileDescriptor{shop}, nil},
		{*idempotent, nil, nil},
	} {
		if got := grpcmw.IdempotentMethods(c.level, c.files...); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.level, got, c.want)
		}
	}
}
