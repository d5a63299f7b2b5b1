const _: () = {
    use ::keelson_machinery::reflect as __reflect;
    static FIELDS: &[__reflect::FieldDesc] = &[
        __reflect::FieldDesc::new::<
            ObjectMeta,
        >("metadata", 1u32, __reflect::Flags::NONE),
        __reflect::FieldDesc::new::<
            i32,
        >(
                "size",
                3u32,
                __reflect::Flags::NONE
                    .with(__reflect::Flags::ALWAYS)
                    .with(__reflect::Flags::REQUIRED)
                    .with(__reflect::Flags::HAS_RULES),
            )
            .with_rules(
                __reflect::Ref::Static(const {
                    &__reflect::Rules {
                        enum_values: __reflect::Names::NONE,
                        item_enum: __reflect::Names::NONE,
                        minimum: ::core::option::Option::Some(-1.5f64),
                        maximum: ::core::option::Option::None,
                        exclusive_minimum: true,
                        exclusive_maximum: false,
                        multiple_of: ::core::option::Option::None,
                        min_length: ::core::option::Option::None,
                        max_length: ::core::option::Option::Some(4u32),
                        min_items: ::core::option::Option::None,
                        max_items: ::core::option::Option::None,
                        min_properties: ::core::option::Option::None,
                        max_properties: ::core::option::Option::None,
                        pattern: __reflect::Name::new_static(""),
                        format: __reflect::Name::new_static(""),
                        key_format: __reflect::Name::new_static(""),
                        item_format: __reflect::Name::new_static(""),
                        required_when: __reflect::Name::new_static(""),
                        validations: __reflect::Ref::Static(&[]),
                    }
                }),
            ),
        __reflect::FieldDesc::new::<
            String,
        >("type", 2u32, __reflect::Flags::NONE.with(__reflect::Flags::HAS_DEFAULTS))
            .with_details(
                __reflect::Ref::Static(const {
                    &__reflect::Details {
                        default: ::core::option::Option::Some(
                            __reflect::Name::new_static("\"a\""),
                        ),
                        map_keys: __reflect::Names::NONE,
                        merge_key: __reflect::Name::new_static(""),
                        go_type: __reflect::Name::new_static(""),
                    }
                }),
            )
            .with_rules(
                __reflect::Ref::Static(const {
                    &__reflect::Rules {
                        enum_values: __reflect::Names::Static(&["a", "b"]),
                        item_enum: __reflect::Names::NONE,
                        minimum: ::core::option::Option::None,
                        maximum: ::core::option::Option::None,
                        exclusive_minimum: false,
                        exclusive_maximum: false,
                        multiple_of: ::core::option::Option::None,
                        min_length: ::core::option::Option::None,
                        max_length: ::core::option::Option::None,
                        min_items: ::core::option::Option::None,
                        max_items: ::core::option::Option::None,
                        min_properties: ::core::option::Option::None,
                        max_properties: ::core::option::Option::None,
                        pattern: __reflect::Name::new_static(""),
                        format: __reflect::Name::new_static(""),
                        key_format: __reflect::Name::new_static(""),
                        item_format: __reflect::Name::new_static(""),
                        required_when: __reflect::Name::new_static(""),
                        validations: __reflect::Ref::Static(&[]),
                    }
                }),
            ),
        __reflect::FieldDesc::new::<Vec<Part>>("parts", 0u32, __reflect::Flags::NONE)
            .with_list(__reflect::ListType::Map)
            .with_patch(
                __reflect::Patch(
                    __reflect::Patch::NONE.0 | __reflect::Patch::MERGE.0
                        | __reflect::Patch::RETAIN_KEYS.0,
                ),
            )
            .with_details(
                __reflect::Ref::Static(const {
                    &__reflect::Details {
                        default: ::core::option::Option::None,
                        map_keys: __reflect::Names::Static(&["name", "port"]),
                        merge_key: __reflect::Name::new_static("name"),
                        go_type: __reflect::Name::new_static(""),
                    }
                }),
            ),
        __reflect::FieldDesc::new::<
            Source,
        >("source", 4u32, __reflect::Flags::NONE.with(__reflect::Flags::INLINE)),
    ];
    static DESC: __reflect::MessageDesc = __reflect::MessageDesc {
        name: __reflect::Name::new_static("com.example.v1.Widget"),
        fields: __reflect::Ref::Static(FIELDS),
        by_number: __reflect::Ref::Static(&[0, 2, 1, 4]),
        by_name: __reflect::Ref::Static(&[0, 3, 1, 2]),
        inlined: __reflect::Ref::Static(&[4]),
        missed: __reflect::Ref::Static(&[]),
        defaulted: __reflect::Ref::Static(&[2]),
        make: __reflect::Make::Object(|| {
            ::std::boxed::Box::new(<Widget as ::core::default::Default>::default())
        }),
        gvk: ::core::option::Option::Some(__reflect::Ref::Static(&GVK)),
        size: ::core::mem::size_of::<Widget>(),
        unknown: __reflect::Unknown::Dropped,
        rules: __reflect::Ref::Static(&__reflect::NO_MESSAGE_RULES),
        id: __reflect::Id::unassigned(),
    };
    static HANDLE: __reflect::Desc = __reflect::Ref::Static(&DESC);
    impl Widget {
        /// The table of this message's fields.
        pub const fn message_desc() -> &'static __reflect::MessageDesc {
            &DESC
        }
    }
    impl __reflect::Field for Widget {
        const TYPE: __reflect::Type = __reflect::Type::Message(
            __reflect::Ref::Static(&DESC),
        );
        fn value(&self) -> __reflect::Value<'_> {
            __reflect::Value::Message(self)
        }
        fn slot(&mut self) -> __reflect::Slot<'_> {
            __reflect::Slot::Message(self)
        }
    }
    impl __reflect::Reflect for Widget {
        fn desc(&self) -> &__reflect::MessageDesc {
            &DESC
        }
        fn handle(&self) -> &__reflect::Desc {
            &HANDLE
        }
        fn get(&self, index: usize) -> __reflect::Value<'_> {
            match index {
                0 => __reflect::Field::value(&self.metadata),
                1 => __reflect::Field::value(&self.size),
                2 => __reflect::Field::value(&self.r#type),
                3 => __reflect::Field::value(&self.parts),
                4 => __reflect::Field::value(&self.source),
                _ => __reflect::Value::Absent,
            }
        }
        fn said<'a>(&'a self, said: &mut ::std::vec::Vec<__reflect::Said<'a>>) {
            if !__reflect::Field::is_bare(&self.metadata) {
                said.push((0, __reflect::Field::value(&self.metadata)));
            }
            said.push((1, __reflect::Field::value(&self.size)));
            if !__reflect::Field::is_bare(&self.r#type) {
                said.push((2, __reflect::Field::value(&self.r#type)));
            }
            if !__reflect::Field::is_bare(&self.parts) {
                said.push((3, __reflect::Field::value(&self.parts)));
            }
            if !__reflect::Field::is_bare(&self.source) {
                said.push((4, __reflect::Field::value(&self.source)));
            }
        }
        fn get_mut(
            &mut self,
            index: usize,
        ) -> ::core::option::Option<__reflect::Slot<'_>> {
            ::core::option::Option::Some(
                match index {
                    0 => __reflect::Field::slot(&mut self.metadata),
                    1 => __reflect::Field::slot(&mut self.size),
                    2 => __reflect::Field::slot(&mut self.r#type),
                    3 => __reflect::Field::slot(&mut self.parts),
                    4 => __reflect::Field::slot(&mut self.source),
                    _ => return ::core::option::Option::None,
                },
            )
        }
        fn clone_message(&self) -> ::std::boxed::Box<dyn __reflect::Reflect> {
            ::std::boxed::Box::new(::core::clone::Clone::clone(self))
        }
        fn as_any(&self) -> &dyn ::core::any::Any {
            self
        }
        fn as_any_mut(&mut self) -> &mut dyn ::core::any::Any {
            self
        }
        fn into_any(
            self: ::std::boxed::Box<Self>,
        ) -> ::std::boxed::Box<dyn ::core::any::Any> {
            self
        }
    }
    static GVK: ::keelson_machinery::object::Gvk = ::keelson_machinery::object::Gvk::new_static(
        "example.com",
        "v1",
        "Widget",
    );
    impl ::keelson_machinery::object::Kind for Widget {
        fn gvk(&self) -> &::keelson_machinery::object::Gvk {
            &GVK
        }
        fn as_reflect(&self) -> &dyn __reflect::Reflect {
            self
        }
        fn as_reflect_mut(&mut self) -> &mut dyn __reflect::Reflect {
            self
        }
    }
    impl ::keelson_machinery::object::Object for Widget {
        fn meta(&self) -> &::keelson_machinery::meta::v1::ObjectMeta {
            &self.metadata
        }
        fn meta_mut(&mut self) -> &mut ::keelson_machinery::meta::v1::ObjectMeta {
            &mut self.metadata
        }
        fn clone_object(
            &self,
        ) -> ::std::boxed::Box<dyn ::keelson_machinery::object::Object> {
            ::std::boxed::Box::new(::core::clone::Clone::clone(self))
        }
    }
};
