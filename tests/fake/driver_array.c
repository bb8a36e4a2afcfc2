/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arrays and mipmapped arrays: their sizes, not their contents.
 *
 * Invariant: a sparse array or one whose mapping is deferred owns no bytes.
 */
#include "fake.h"

/* numbers of an array */
enum { WIDTH, HEIGHT, DEPTH, FORMAT, CHANNELS, LEVELS };

static uint64_t element_bytes(unsigned int format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static uint64_t at_least_one(uint64_t value)
{
    return value != 0 ? value : 1;
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *form, unsigned level)
{
    return at_least_one(form->Width >> level) *
           at_least_one(form->Height >> level) *
           at_least_one(form->Depth >> level) * form->NumChannels *
           element_bytes(form->Format);
}

static bool owns_none(unsigned int flags)
{
    return (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

static bool is_sound(const CUDA_ARRAY3D_DESCRIPTOR *form)
{
    const uint64_t most = UINT64_C(1) << 18;

    return form->Width != 0 && form->Width <= most && form->Height <= most &&
           form->Depth <= most && element_bytes(form->Format) != 0 &&
           (form->NumChannels == 1 || form->NumChannels == 2 ||
            form->NumChannels == 4);
}

/* bytes: of the device, 0 for who owns none */
static CUresult make(struct fake_object **made, enum fake_type type,
                     const CUDA_ARRAY3D_DESCRIPTOR *form, uint64_t bytes,
                     struct fake_object *context)
{
    uint64_t charged = fake_rounded(bytes, FAKE_BLOCK_BYTES);
    struct fake_object *object;

    if (!fake_charge(context->device, charged) &&
        (!fake_pools_trim(context->device) ||
         !fake_charge(context->device, charged))) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object = fake_new(type, 0);
    if (object == NULL) {
        fake_discharge(context->device, charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->context = context;
    object->device = context->device;
    object->size_bytes = bytes;
    object->charged_bytes = charged;
    object->flags = form->Flags;
    object->numbers[WIDTH] = form->Width;
    object->numbers[HEIGHT] = form->Height;
    object->numbers[DEPTH] = form->Depth;
    object->numbers[FORMAT] = form->Format;
    object->numbers[CHANNELS] = form->NumChannels;
    fake_live(type, (int64_t)bytes, 1);
    *made = object;
    return CUDA_SUCCESS;
}

static CUresult may(struct fake_object **context)
{
    CUresult why;

    *context = fake_context(&why);
    if (*context != NULL) {
        why = fake_capture_forbids();
    }
    return why != CUDA_SUCCESS ? why : fake_fault();
}

static CUresult create(void **handle, const CUDA_ARRAY3D_DESCRIPTOR *form)
{
    struct fake_object *context;
    struct fake_object *made = NULL;
    CUresult why = may(&context);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (handle == NULL || form == NULL || !is_sound(form)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    why = make(&made, FAKE_ARRAY, form,
               owns_none(form->Flags) ? 0 : level_bytes(form, 0), context);
    if (why == CUDA_SUCCESS) {
        *handle = made;
    }
    return why;
}

static CUresult create_flat(void **handle, const CUDA_ARRAY_DESCRIPTOR *form)
{
    CUDA_ARRAY3D_DESCRIPTOR whole;

    if (form == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    whole = (CUDA_ARRAY3D_DESCRIPTOR){form->Width,  form->Height,      0,
                                      form->Format, form->NumChannels, 0};
    return create(handle, &whole);
}

static CUresult create_mipmap(void **handle,
                              const CUDA_ARRAY3D_DESCRIPTOR *form,
                              unsigned int levels)
{
    struct fake_object *context;
    struct fake_object *made = NULL;
    uint64_t bytes = 0;
    CUresult why = may(&context);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (handle == NULL || form == NULL || !is_sound(form) || levels == 0 ||
        levels > 19) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned int i = 0; i < levels && !owns_none(form->Flags); i++) {
        bytes += level_bytes(form, i);
    }
    why = make(&made, FAKE_MIPMAP, form, bytes, context);
    if (why == CUDA_SUCCESS) {
        made->numbers[LEVELS] = levels;
        *handle = made;
    }
    return why;
}

static CUresult destroy(void *handle, enum fake_type type)
{
    struct fake_object *found = fake_check(handle, type);
    CUresult why = fake_no_context();

    if (why != CUDA_SUCCESS) {
        return why;
    }
    /* A level belongs to its mipmap. */
    if (found == NULL || found->owner != NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake_end(found);
    return CUDA_SUCCESS;
}

static CUresult get_level(CUarray *handle, CUmipmappedArray of,
                          unsigned int level)
{
    struct fake_object *mipmap = fake_check(of, FAKE_MIPMAP);
    CUDA_ARRAY3D_DESCRIPTOR form;
    struct fake_object *made = NULL;
    CUresult why;

    if (mipmap == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (handle == NULL || level >= mipmap->numbers[LEVELS]) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    form = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = at_least_one(mipmap->numbers[WIDTH] >> level),
        .Height = mipmap->numbers[HEIGHT] >> level,
        .Depth = mipmap->numbers[DEPTH] >> level,
        .Format = (CUarray_format)mipmap->numbers[FORMAT],
        .NumChannels = (unsigned int)mipmap->numbers[CHANNELS],
    };
    why = make(&made, FAKE_ARRAY, &form, 0, mipmap->context);
    if (why == CUDA_SUCCESS) {
        made->owner = mipmap;
        *handle = (CUarray)made;
    }
    return why;
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *form, CUarray handle)
{
    const struct fake_object *found = fake_check(handle, FAKE_ARRAY);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (form == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *form = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = found->numbers[WIDTH],
        .Height = found->numbers[HEIGHT],
        .Depth = found->numbers[DEPTH],
        .Format = (CUarray_format)found->numbers[FORMAT],
        .NumChannels = (unsigned int)found->numbers[CHANNELS],
        .Flags = found->flags,
    };
    return CUDA_SUCCESS;
}

static CUresult describe_flat(CUDA_ARRAY_DESCRIPTOR *form, CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR whole;
    CUresult why =
        form == NULL ? CUDA_ERROR_INVALID_VALUE : describe(&whole, handle);

    if (why == CUDA_SUCCESS) {
        *form = (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format,
                                        whole.NumChannels};
    }
    return why;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *need,
                             CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR form;
    CUresult why = describe(&form, handle);

    if (why != CUDA_SUCCESS) {
        return why;
    }
    if (need == NULL || (form.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *need = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
        .size = fake_rounded(level_bytes(&form, 0), FAKE_GRANULARITY_BYTES),
        .alignment = FAKE_GRANULARITY_BYTES,
    };
    return CUDA_SUCCESS;
}

/* The first ABI differs in the width of its numbers only. */
static CUresult create_flat_v1(void **handle,
                               const CUDA_ARRAY_DESCRIPTOR_v1 *form)
{
    CUDA_ARRAY_DESCRIPTOR whole;

    if (form == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    whole = (CUDA_ARRAY_DESCRIPTOR){form->Width, form->Height, form->Format,
                                    form->NumChannels};
    return create_flat(handle, &whole);
}

static CUresult create_v1(void **handle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *form)
{
    CUDA_ARRAY3D_DESCRIPTOR whole;

    if (form == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    whole =
        (CUDA_ARRAY3D_DESCRIPTOR){form->Width,  form->Height,      form->Depth,
                                  form->Format, form->NumChannels, form->Flags};
    return create(handle, &whole);
}

FAKE_DEFINE(cuArrayCreate,
            (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1 *form),
            create_flat_v1((void **)array, form))
FAKE_DEFINE(cuArray3DCreate,
            (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *form),
            create_v1((void **)array, form))
FAKE_DEFINE(cuArrayCreate_v2,
            (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *form),
            create_flat((void **)array, form))
FAKE_DEFINE(cuArray3DCreate_v2,
            (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *form),
            create((void **)array, form))
FAKE_DEFINE(cuArrayDestroy, (CUarray array), destroy(array, FAKE_ARRAY))
FAKE_DEFINE(cuArrayGetDescriptor_v2,
            (CUDA_ARRAY_DESCRIPTOR * form, CUarray array),
            describe_flat(form, array))
FAKE_DEFINE(cuArray3DGetDescriptor_v2,
            (CUDA_ARRAY3D_DESCRIPTOR * form, CUarray array),
            describe(form, array))
FAKE_DEFINE(cuArrayGetMemoryRequirements,
            (CUDA_ARRAY_MEMORY_REQUIREMENTS * need, CUarray array,
             CUdevice device),
            ((void)device, requirements(need, array)))
FAKE_DEFINE(cuMipmappedArrayCreate,
            (CUmipmappedArray * mipmap, const CUDA_ARRAY3D_DESCRIPTOR *form,
             unsigned int levels),
            create_mipmap((void **)mipmap, form, levels))
FAKE_DEFINE(cuMipmappedArrayDestroy, (CUmipmappedArray mipmap),
            destroy(mipmap, FAKE_MIPMAP))
FAKE_DEFINE(cuMipmappedArrayGetLevel,
            (CUarray * array, CUmipmappedArray mipmap, unsigned int level),
            get_level(array, mipmap, level))
