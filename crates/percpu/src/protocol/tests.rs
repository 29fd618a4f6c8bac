//! Tests of the protocols that need one thread. They stand apart from the files they test, which the models
//! compile against other atomics.

mod registry {
    use super::super::registry::*;
    use crate::sync::*;

    fn registry() -> Registry<2> {
        Registry::over([const { AtomicU64::new(0) }; 2], AtomicU32::new(0))
    }

    #[test]
    fn ids_are_dense_and_the_lowest_free_one_comes_next() {
        let ids = registry();
        assert_eq!(
            [ids.claim(), ids.claim(), ids.claim()],
            [Some(0), Some(1), Some(2)]
        );
        ids.release(1);
        ids.release(0);
        assert_eq!(
            [ids.claim(), ids.claim(), ids.claim()],
            [Some(0), Some(1), Some(3)]
        );
        assert_eq!(ids.high_water(), 4);
    }

    #[test]
    fn a_full_registry_gives_none_until_one_is_given_back() {
        let ids = registry();
        for id in 0..128 {
            assert_eq!(ids.claim(), Some(id));
        }
        assert_eq!(ids.claim(), None);
        ids.release(100);
        assert_eq!(ids.claim(), Some(100));
        ids.release(4000);
        assert_eq!(ids.claim(), None);
    }

    #[test]
    fn the_child_of_a_fork_keeps_one_id() {
        let ids = registry();
        for _ in 0..70 {
            ids.claim();
        }
        ids.keep_only(Some(65));
        assert_eq!(ids.claim(), Some(0));
        for id in 1..65 {
            assert_eq!(ids.claim(), Some(id));
        }
        assert_eq!(ids.claim(), Some(66));
        ids.keep_only(None);
        assert_eq!(ids.claim(), Some(0));
    }
}

mod once {
    use super::super::once::*;
    use crate::sync::*;

    #[test]
    fn the_first_set_wins_and_stays() {
        let mut once = OnceBox::over(AtomicPtr::new(std::ptr::null_mut()));
        assert_eq!(once.get(), None);
        assert_eq!(*once.set(Box::new(1)), 1);
        assert_eq!(*once.set(Box::new(2)), 1);
        *once.get_mut().unwrap() += 10;
        assert_eq!(once.get(), Some(&11));
    }
}
