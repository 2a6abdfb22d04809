//! Values of any type that can be read, made up: each field, list and option as its type asks for it, from a seed.

use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::json;

/// How often what may be absent is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    Never,
    Some,
    Always,
}

/// A value of a type. Lists have one element where nothing is absent, and none to two else.
pub fn invent<T: DeserializeOwned>(seed: u64, absent: Absent) -> T {
    let mut source = Source { state: seed, absent };
    T::deserialize(&mut source).expect("a value can be made up")
}

struct Source {
    state: u64,
    absent: Absent,
}

impl Source {
    /// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn is_absent(&mut self) -> bool {
        match self.absent {
            Absent::Never => false,
            Absent::Some => self.next() & 1 == 0,
            Absent::Always => true,
        }
    }

    /// Small ones too; none beyond what a result may count.
    fn whole(&mut self) -> u64 {
        let bits = 11 + self.next() % 53;
        self.next() >> bits
    }

    fn text(&mut self) -> String {
        let letters = ["a", "ß", "\"", "\\", "\n", "<", "0", " "];
        let length = self.next() % 6;
        (0..length).map(|_| letters[(self.next() % 8) as usize]).collect()
    }
}

impl Source {
    /// One of the changes of a program, of which one has a field that may be absent.
    fn change(&mut self) -> serde_json::Value {
        let (data, bytes, more) = (self.text(), self.whole(), self.whole());
        let mut change = match self.next() % 4 {
            0 => json!({"kind": "pad", "row_bytes": bytes, "pad_bytes": more}),
            1 => json!({"kind": "transpose", "element_bytes": bytes, "columns": more}),
            2 => json!({"kind": "fields", "element_bytes": bytes, "groups": [[{"offset": more, "bytes": 4}], []]}),
            _ => json!({"kind": "huge-pages"}),
        };
        if change["kind"] != "huge-pages" || !self.is_absent() {
            change["data"] = data.into();
        }
        change
    }
}

macro_rules! number {
    ($($ask:ident $visit:ident $kind:ty;)*) => {
        $(fn $ask<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.whole() as $kind)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Source {
    type Error = Error;

    number! {
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // An enum that is tagged within asks for anything, and says what it is only to people.
        if (&visitor as &dyn Expected).to_string().contains("ProgramChange") {
            let change = self.change();
            return change.deserialize_any(visitor).map_err(Error::custom);
        }
        // A type that takes several kinds of numbers.
        visitor.visit_u64(self.whole())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.next() & 1 == 0)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let float = f64::from_bits(self.next());
        visitor.visit_f64(if float.abs() <= 9_007_199_254_740_992.0 {
            float
        } else {
            0.5
        })
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.is_absent() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = match self.absent {
            Absent::Some => (self.next() % 3) as usize,
            Absent::Never | Absent::Always => 1,
        };
        visitor.visit_seq(Elements { source: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements { source: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { source: self, fields })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let chosen = variants[(self.next() % variants.len() as u64) as usize];
        visitor.visit_enum(Variant(chosen))
    }

    forward_to_deserialize_any! {
        i8 i16 f32 char str bytes byte_buf unit unit_struct newtype_struct tuple_struct map identifier ignored_any
    }
}

struct Elements<'a> {
    source: &'a mut Source,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.source).map(Some)
    }
}

struct Fields<'a> {
    source: &'a mut Source,
    fields: &'static [&'static str],
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.fields.first() else {
            return Ok(None);
        };
        seed.deserialize(serde::de::value::StrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.fields = &self.fields[1..];
        seed.deserialize(&mut *self.source)
    }
}

struct Variant(&'static str);

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Variant;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Variant), Error> {
        let name = serde::de::value::StrDeserializer::new(self.0);
        Ok((seed.deserialize(name)?, self))
    }
}

/// Variants without anything in them.
impl<'de> VariantAccess<'de> for Variant {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Error> {
        Err(serde::de::Error::custom("a variant with a value is not made up yet"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("a variant with values is not made up yet"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("a variant with fields is not made up yet"))
    }
}
